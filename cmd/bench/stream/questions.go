package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"giantstream/internal/freeport"
)

// questions asks a service for similar items with filters while attributes change, and measures how long answers take,
// how old what they say is, and whether memory grows.
func questions(ctx context.Context, args []string) error {
	fl := newFlags("questions")
	nodes := fl.Int("nodes", 100_000, "nodes")
	rate := fl.Int("rate", 2000, "changes of an attribute per second")
	asked := fl.Int("questions", 50, "questions per second")
	length := fl.Duration("for", 5*time.Minute, "how long")
	p, err := fl.open(args)
	if err != nil {
		return err
	}
	listen, err := freeport.Addr(ctx)
	if err != nil {
		return err
	}
	l := pipeline{name: "asked", nodes: "asked.nodes", edges: "asked.edges",
		shards: shards, window: "1s", listen: listen,
		// One generation, which serves throughout.
		more: "train: {encoder: linear}\nrefresh: {min_changes: 1000000000}\nevaluate: {probe_rates: []}\n" +
			"ingest: {attributes: {id: id, fields: [\"asked.prices/price:number\"]}}\n"}
	a := &asking{place: p, graph: newGraph(*nodes, 3, fl.seed), url: "http://" + listen + "/similar/"}
	if err := p.topics(ctx, shards, l.nodes, l.edges, "asked.prices"); err != nil {
		return err
	}
	if err := a.graph.produce(ctx, p.client, l.nodes, l.edges); err != nil {
		return err
	}
	if err := a.prices(ctx); err != nil {
		return err
	}
	if a.service, err = p.giantstreamRun(ctx, l, "asked.log", "--roles", "stream,refresh,embed,serve"); err != nil {
		return err
	}
	defer a.service.stop()
	progress("waiting for the first generation")
	return a.service.during(ctx, func(ctx context.Context) error {
		if err := p.awaitPublished(ctx, l); err != nil {
			return err
		}
		if err := poll(ctx, time.Second, func() (bool, error) {
			_, n, err := a.ask(ctx, a.graph.id(0), "")
			return n > 0, err
		}); err != nil {
			return err
		}
		if err := a.run(ctx, *rate, *asked, *length); err != nil {
			return err
		}
		fmt.Printf("\n%d nodes, linear, %d prices a second for %v, %d questions a second; load %.1f\n%s",
			*nodes, *rate, *length, *asked, loadAverage(), a.summary())
		return nil
	})
}

// asking is a service under questions.
type asking struct {
	*place
	graph   *graph
	url     string
	service *process

	mu           sync.Mutex
	took, behind []time.Duration
	resident     []int // MiB, over time
}

// run changes prices and asks until the time is over.
func (a *asking) run(ctx context.Context, rate, asked int, length time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.change(ctx, rate) })
	g.Go(func() error { return a.probe(ctx) })
	g.Go(func() error {
		random := rand.New(rand.NewPCG(a.graph.seed, 3))
		return every(ctx, time.Second/time.Duration(asked), func() error {
			share := []string{"500", "100", "10", "1"}[random.IntN(4)] // of a thousand prices
			took, n, err := a.ask(ctx, a.graph.id(random.IntN(a.graph.nodes)), "price<"+share)
			if err == nil && n == 0 {
				err = errors.New("a question has no answer")
			}
			a.mu.Lock()
			a.took = append(a.took, took)
			a.mu.Unlock()
			return err
		})
	})
	g.Go(func() error {
		return every(ctx, time.Second, func() error {
			mib, err := residentMiB(a.service.cmd.Process.Pid)
			a.resident = append(a.resident, mib)
			return err
		})
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// change sends prices below 1,000 at an even rate.
func (a *asking) change(ctx context.Context, rate int) error {
	producer := a.client.NewProducer()
	defer producer.Close() //nolint:errcheck // what is on its way when the time is over says nothing
	random := rand.New(rand.NewPCG(a.graph.seed, 2))
	const period = 10 * time.Millisecond
	began, sent := time.Now(), 0
	return every(ctx, period, func() error {
		var msgs []kafka.Message
		for ; sent < int(time.Since(began).Seconds()*float64(rate)); sent++ {
			msgs = append(msgs, a.price(random.IntN(a.graph.nodes), random.IntN(1000)))
		}
		if len(msgs) == 0 {
			return nil
		}
		return producer.Send(ctx, msgs...)
	})
}

// prices gives each node one.
func (a *asking) prices(ctx context.Context) error {
	producer := a.client.NewProducer()
	for i := range a.graph.nodes {
		if err := producer.Send(ctx, a.price(i, i%1000)); err != nil {
			return err
		}
	}
	return errors.Join(producer.Flush(ctx), producer.Close())
}

func (a *asking) price(i, price int) kafka.Message {
	id := a.graph.id(i)
	value := fmt.Appendf(nil, `{"id":%q,"price":%d}`, id, price)
	return kafka.Message{Topic: "asked.prices", Key: []byte(id), Value: value}
}

// probe gives one node after the other a price of its own, and asks for it until it is there.
func (a *asking) probe(ctx context.Context) error {
	producer := a.client.NewProducer()
	defer producer.Close() //nolint:errcheck // as above
	for n := 0; ; n++ {
		price := 1000 + n
		began := time.Now()
		if err := errors.Join(producer.Send(ctx, a.price(n%a.graph.nodes, price)), producer.Flush(ctx)); err != nil {
			return err
		}
		err := poll(ctx, 20*time.Millisecond, func() (bool, error) {
			// Another change of the same node can be later: then this price never shows.
			_, found, err := a.ask(ctx, a.graph.id(a.graph.nodes-1), "price="+strconv.Itoa(price))
			return found > 0 || time.Since(began) > 10*time.Second, err
		})
		if err != nil {
			return err
		}
		if behind := time.Since(began); behind < 10*time.Second {
			a.mu.Lock()
			a.behind = append(a.behind, behind)
			a.mu.Unlock()
		}
	}
}

// ask returns how long an answer took, and how many items it has.
func (a *asking) ask(ctx context.Context, item, where string) (took time.Duration, n int, err error) {
	query := url.Values{"k": {"10"}}
	if where != "" {
		query.Set("where", where)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+url.PathEscape(item)+"?"+query.Encode(), nil)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, 0, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	took = time.Since(began)
	if err != nil || r.StatusCode == http.StatusServiceUnavailable || r.StatusCode == http.StatusNotFound {
		return took, 0, err // the generation is on its way
	}
	if r.StatusCode != http.StatusOK {
		return took, 0, fmt.Errorf("status %d: %s", r.StatusCode, body)
	}
	var found struct{ Results []struct{ ID string } }
	err = json.Unmarshal(body, &found)
	return took, len(found.Results), err
}

func (a *asking) summary() string {
	at := func(d []time.Duration, q float64) time.Duration {
		slices.Sort(d)
		if len(d) == 0 {
			return 0
		}
		return d[int(q*float64(len(d)-1))]
	}
	minute := func(of []int) (out []int) {
		for i := 0; i < len(of); i += 60 {
			out = append(out, of[i])
		}
		return out
	}
	return fmt.Sprintf("%d questions: p50 %v, p99 %v\n%d changes that were asked for: after p50 %v, p99 %v\n"+
		"resident MiB, by minute: %v\n", len(a.took), at(a.took, .5), at(a.took, .99),
		len(a.behind), at(a.behind, .5), at(a.behind, .99), minute(a.resident))
}

// every calls f at an even pace until ctx ends or an error.
func every(ctx context.Context, period time.Duration, f func() error) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		if err := f(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// residentMiB is what a process has in memory now.
func residentMiB(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data))
	pages, err := strconv.Atoi(fields[1])
	return pages * os.Getpagesize() >> 20, err
}
