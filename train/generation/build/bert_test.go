package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"giantstream/internal/race"
	"giantstream/sink"
	"giantstream/sink/memstore"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/safetensors"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/fit"
	"giantstream/train/internal/graphtest"
)

// Where a generation keeps what is left of a training, and a picture of it.
const (
	checkpointsFolder = "encoder/checkpoints/"
	ngramsFolder      = "encoder/ngrams/"
	lossPicture       = "encoder/loss.svg"
)

// tinyBERT has a builder fine-tune the random two-layer model that package
// bert is tested with.
func tinyBERT(store sink.Store) *testBuild {
	b := builder(store)
	b.Settings.Encoder, b.Settings.Epochs = bert.Kind, 2
	b.Settings.BERT = &fit.BERT{Model: "../../encoders/bert/testdata/tiny", Pooling: "mean", MaxTokens: 16}
	var ticks int64 // every step is time for a checkpoint
	b.Now = func() time.Time { ticks++; return time.Unix(ticks, 0) }
	b.CheckpointEvery = time.Nanosecond
	return b
}

// joinedBERT has it fine-tuned with n-grams and the text beside it.
func joinedBERT(store sink.Store) *testBuild {
	b := tinyBERT(store)
	b.Settings.BERT.NGrams = 500
	return b
}

// plainBERT has the model stay as it came.
func plainBERT(store sink.Store) *testBuild {
	b := joinedBERT(store)
	b.Settings.Epochs = 0
	return b
}

func graphOf(nodes int) *commits {
	log := &commits{}
	for _, r := range graphtest.Rows(nodes, topicCount) {
		log.add(1, r)
	}
	return log
}

// A generation with a BERT serves what was trained, keeps a matcher and a
// picture of its training, and leaves no checkpoints.
func TestBuildWithBERT(t *testing.T) {
	race.SkipComputing(t)
	store, log := &memstore.Store{}, graphOf(400)
	doc := buildWith(t, tinyBERT(store), 1, log, nil)
	g, err := generation.Open(t.Context(), store, doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	if g.Encoder.Kind() != bert.Kind || doc.Encoder.Kind != bert.Kind || doc.Encoder.Dim != g.Encoder.Dim() {
		t.Errorf("encoder %s, document %+v", g.Encoder.Kind(), doc.Encoder)
	}
	texts := []string{graphtest.Rows(400, topicCount)[0].Text}
	z, before := make([]float32, g.Encoder.Dim()), make([]float32, g.Encoder.Dim())
	start, err := bert.Open(os.DirFS("../../encoders/bert/testdata/tiny"), cpu.New(),
		bert.Options{Pooling: compute.Mean, MaxTokens: 16})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Encoder.Encode(texts, z), start.Encode(texts, before)); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(z, before) {
		t.Error("the encoder is the model that training started from")
	}
	model := objects(t, store)[generation.Prefix(1)+generation.EncoderName+"/model.safetensors"]
	tensors, err := safetensors.Open(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		t.Fatal(err)
	}
	for level, clusters := range doc.Tree.Levels {
		if _, err := tensors.Float32(fmt.Sprintf("bias.%d", level), clusters); err != nil {
			t.Errorf("matcher: %v, want %d levels with biases", err, len(doc.Tree.Levels))
		}
	}
	if _, more := tensors.Shape(fmt.Sprintf("head.%d", len(doc.Tree.Levels))); more {
		t.Error("the matcher has the labels as a level")
	}
	checkPicture(t, store, lossPicture)
	for key := range objects(t, store) {
		if strings.Contains(key, checkpointsFolder) || strings.Contains(key, ngramsFolder) {
			t.Errorf("%s is left", key)
		}
	}
}

func checkPicture(t *testing.T, store sink.Store, name string) {
	t.Helper()
	svg := string(objects(t, store)[generation.Prefix(1)+name])
	if !strings.HasPrefix(svg, "<svg") || !strings.Contains(svg, "<polyline") || !strings.HasSuffix(svg, "</svg>\n") {
		t.Errorf("%s: %.80q, want a picture of the loss", name, svg)
	}
}

// With n-grams beside it, the stored encoder joins both to the text, at the dimension of all
// other encoders. The model is fine-tuned only where the settings ask for epochs.
func TestBuildWithNGrams(t *testing.T) {
	race.SkipComputing(t)
	tiny, err := bert.Open(os.DirFS("../../encoders/bert/testdata/tiny"), cpu.New(),
		bert.Options{Pooling: compute.Mean, MaxTokens: 16})
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{graphtest.Rows(400, topicCount)[0].Text}
	encoded := func(e train.Encoder) []float32 {
		out := make([]float32, e.Dim())
		if err := e.Encode(texts, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for epochs, builder := range map[int]func(sink.Store) *testBuild{0: plainBERT, 2: joinedBERT} {
		store := &memstore.Store{}
		doc := buildWith(t, builder(store), 1, graphOf(400), nil)
		g, err := generation.Open(t.Context(), store, doc, nil)
		if err != nil {
			t.Fatal(err)
		}
		joined, ok := g.Encoder.(*hybrid.Encoder)
		if !ok || joined.Kind() != bert.Kind || joined.Dim() != doc.Encoder.Dim {
			t.Fatalf("encoder %T of kind %s, want a BERT joined to the text", g.Encoder, doc.Encoder.Kind)
		}
		v := joined.Views()
		if v.Table.Dim() != joined.Dim() || len(v.Table.Features()) != 500 {
			t.Errorf("embeddings of %d numbers from %d n-grams of %d", joined.Dim(), len(v.Table.Features()),
				v.Table.Dim())
		}
		if plain := slices.Equal(encoded(v.Model), encoded(tiny)); plain != (epochs == 0) {
			t.Errorf("%d epochs: the model is as it came: %t", epochs, plain)
		}
		if report := compact(t, doc); !strings.Contains(report, `"ngrams":{"instances"`) {
			t.Errorf("%d epochs: the report %s has nothing of the n-grams", epochs, report)
		}
		if _, drawn := objects(t, store)[generation.Prefix(1)+lossPicture]; drawn != (epochs > 0) {
			t.Errorf("%d epochs: a picture of the fine-tuning is there: %t", epochs, drawn)
		}
	}
}

// Training that is cut off resumes from its checkpoint and ends with the same
// bytes; a damaged checkpoint costs the steps since the one before it.
func TestBERTResumes(t *testing.T)           { resumes(t, tinyBERT, checkpointsFolder) }
func TestBERTWithNGramsResumes(t *testing.T) { resumes(t, joinedBERT, checkpointsFolder) }
func TestNGramsResume(t *testing.T)          { resumes(t, plainBERT, ngramsFolder) }

// resumes cuts off a build after the fourth checkpoint in a folder.
func resumes(t *testing.T, builder func(sink.Store) *testBuild, folder string) {
	t.Helper()
	race.SkipComputing(t)
	weights := func(s sink.Store) []byte {
		all := objects(t, s)
		return slices.Concat(all[generation.Prefix(1)+"encoder/bert/model.safetensors"],
			all[generation.Prefix(1)+"encoder/model.safetensors"])
	}
	graph := graphOf(400)
	undisturbed := &stopping{Store: &memstore.Store{}, folder: folder}
	whole := compact(t, buildWith(t, builder(undisturbed), 1, graph, nil))
	want := weights(undisturbed)

	for _, damaged := range []bool{false, true} {
		store := &stopping{Store: &memstore.Store{}, folder: folder, after: 4}
		b := builder(store)
		ctx, cancel := context.WithCancel(t.Context())
		store.stop = cancel
		if _, err := b.until(ctx, graph, nil, stages.Finish); !errors.Is(err, context.Canceled) {
			t.Fatalf("build that is cut off: %v", err)
		}
		if len(store.keys) != 4 {
			t.Fatalf("checkpoints %v were written, want 4", store.keys)
		}
		if damaged {
			last := store.keys[3]
			data := objects(t, store.Store)[last]
			data[len(data)/2] ^= 1
			if err := store.Put(t.Context(), last, bytes.NewReader(data), int64(len(data))); err != nil {
				t.Fatal(err)
			}
		}
		store.stop, store.puts = nil, 0
		doc := buildWith(t, b, 1, graph, nil)
		if !bytes.Equal(weights(store.Store), want) {
			t.Errorf("damaged %t: the resumed training ends with other weights", damaged)
		}
		step := 4
		if damaged {
			step = 3
		}
		if want := undisturbed.puts - step; store.puts != want {
			t.Errorf("damaged %t: the resumed training took %d steps, want %d", damaged, store.puts, want)
		}
		// The kept weights may be older than the checkpoint, the losses are of all steps.
		if got := compact(t, doc); got != whole {
			t.Errorf("damaged %t: the report is\n%s\nand of an undisturbed training\n%s", damaged, got, whole)
		}
		for key := range objects(t, store.Store) {
			if strings.Contains(key, folder) {
				t.Errorf("damaged %t: %s is left", damaged, key)
			}
		}
	}
}

// stopping calls stop once so many checkpoints are written to a folder.
type stopping struct {
	sink.Store
	folder string
	after  int
	stop   func()
	keys   []string
	puts   int // of checkpoints
}

func (s *stopping) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	err := s.Store.Put(ctx, key, r, size)
	if strings.Contains(key, s.folder) {
		s.puts++
	}
	if strings.Contains(key, s.folder) && s.stop != nil && !slices.Contains(s.keys, key) {
		if s.keys = append(s.keys, key); len(s.keys) == s.after {
			s.stop()
		}
	}
	return err
}

func TestBERTNeedsAModel(t *testing.T) {
	b := tinyBERT(&memstore.Store{})
	b.Settings.BERT.Model = ""
	if _, err := b.until(t.Context(), graphOf(100), nil, stages.Finish); err == nil ||
		!strings.Contains(err.Error(), "train.bert.model") {
		t.Errorf("without a model: %v, want an error that names the setting", err)
	}
}

// A model that cannot be opened begins no generation, so that the next build may name another. One that has gone
// since the generation was begun says how to go on.
func TestModelThatCannotBeOpened(t *testing.T) {
	race.SkipComputing(t)
	store, log := &memstore.Store{}, graphOf(60)
	b := plainBERT(store)
	model := b.Settings.BERT.Model
	b.Settings.BERT.Model = filepath.Join(t.TempDir(), "model")
	if _, err := b.until(t.Context(), log, nil, stages.Finish); !errors.Is(err, fit.ErrModel) {
		t.Fatalf("built from no directory: %v", err)
	}
	if begun, _, err := generation.Next(t.Context(), store); begun != nil || err != nil {
		t.Fatalf("begun from no directory: %+v, %v", begun, err)
	}
	if err := os.CopyFS(b.Settings.BERT.Model, os.DirFS(model)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.until(t.Context(), log, nil, stages.Projection); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(b.Settings.BERT.Model); err != nil {
		t.Fatal(err)
	}
	if _, err := b.until(t.Context(), log, nil, stages.Finish); !errors.Is(err, fit.ErrModel) ||
		!strings.Contains(err.Error(), "giantstream rebuild") {
		t.Fatalf("built from a model that has gone: %v", err)
	}
}
