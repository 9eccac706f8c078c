package answering

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"giantstream/cmd/internal/nodemap"
	"giantstream/internal/ambient"
	"giantstream/sink"
	"giantstream/train/generation"
)

// MapSide is the side of the map in its own units.
const MapSide = 1000

// MapDocument is the document at /map.json: a sample of the nodes on a plane, and all that the page shows of them.
type MapDocument struct {
	Generation int64 `json:"generation"`
	// Nodes of the generation that have an embedding, or have none for want of text.
	Nodes int `json:"nodes"`
	// ByCluster: no node of the sample has a class, and the groups are clusters of the label tree.
	ByCluster bool            `json:"by_cluster"`
	Groups    []nodemap.Group `json:"groups"`
	// Preserved is the share of the nodes' nearest neighbours that are among the nearest on the map.
	Preserved float64 `json:"preserved"`
	// Points have an id, a place from 0 to MapSide, and the number of a group.
	Points []MapPoint `json:"points"`
}

// MapPoint is a node on the plane of a Map.
type MapPoint struct {
	ID    string  `json:"id"`
	Class string  `json:"class,omitempty"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	Group int     `json:"group"`
}

// mapAgain is the pause after a map that could not be drawn.
const mapAgain = 30 * time.Second

// mapServer draws the map of the generation being served when somebody asks for it for the first time, and keeps it. It
// reads the generation's embeddings once, and two columns of its training set.
type mapServer struct {
	store   sink.Store
	current func() *generation.Generation
	until   <-chan struct{} // closed when the service stops, and with it a drawing
	// draw is drawMap; tests have others.
	draw func(context.Context, sink.Store, *generation.Generation) (*MapDocument, error)

	mu      sync.Mutex
	drawing int64     // the generation that is being drawn, 0 for none
	body    []byte    // the document of the generation drawn
	drawn   int64     // 0 for none
	failure error     // of the last attempt, nil if it succeeded
	again   time.Time // no attempt before
}

// ServeHTTP answers with the map; with 202 while it is being drawn, with 404 before the first generation.
func (m *mapServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	g := m.current()
	if g == nil {
		http.Error(w, "there is no generation yet", http.StatusNotFound)
		return
	}
	body, err := m.mapOf(g)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case body == nil:
		h.Set("Retry-After", "2")
		w.WriteHeader(http.StatusAccepted)
	default:
		h.Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client may be gone
	}
}

// mapOf returns the map of a generation, nil while it is being drawn. One map is drawn at a time.
func (m *mapServer) mapOf(g *generation.Generation) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch number := g.Doc.Generation; {
	case m.drawn == number:
		return m.body, nil
	case m.drawing != 0:
		return nil, nil
	case m.failure != nil && time.Now().Before(m.again):
		return nil, m.failure
	default:
		m.drawing = number
		go m.work(g)
		return nil, nil
	}
}

func (m *mapServer) work(g *generation.Generation) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-m.until:
			cancel()
		case <-ctx.Done():
		}
	}()
	body, err := m.document(ctx, g)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drawing, m.failure = 0, err
	if err != nil {
		m.again = time.Now().Add(mapAgain)
		return
	}
	m.body, m.drawn = body, g.Doc.Generation
}

// document draws a map. A fault of the program is an error here, and ends nothing else that the process does.
func (m *mapServer) document(ctx context.Context, g *generation.Generation) (body []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("drawing the map has panicked: %v\n%s", v, debug.Stack())
		}
	}()
	doc, err := m.draw(ctx, m.store, g)
	if err != nil {
		return nil, fmt.Errorf("the map of generation %d: %w", g.Doc.Generation, err)
	}
	return json.Marshal(doc)
}

// drawMap reads and lays out the sample.
func drawMap(ctx context.Context, store sink.Store, g *generation.Generation) (*MapDocument, error) {
	nodes, err := nodemap.Read(ctx, store, g.Doc, nodemap.Sampled, ambient.OrDiscard(nil))
	if err != nil {
		return nil, err
	}
	if err := nodemap.Classify(ctx, store, g.Doc, nodes); err != nil {
		return nil, err
	}
	out := &MapDocument{Generation: g.Doc.Generation, Nodes: g.Doc.Graph.Nodes, Points: []MapPoint{}}
	out.ByCluster = nodemap.ClusterAsClass(nodes, g)
	legend, of := nodemap.Groups(nodes)
	out.Groups = legend
	layout, _ := nodemap.Layouts(nodes)
	out.Preserved = layout.Preserved
	for i, p := range nodemap.Fit(layout.At, MapSide, 0) {
		out.Points = append(out.Points, MapPoint{nodes[i].ID, nodes[i].Class, math.Round(p[0]*10) / 10,
			math.Round(p[1]*10) / 10, of[i]})
	}
	return out, nil
}
