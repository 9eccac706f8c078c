package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/rogpeppe/go-internal/testscript"

	"giantstream/ingest/broker"
	"giantstream/internal/freeport"
)

// TestJourneys walks the ways that README.md and --help show, from a user's files to an answer. The first line of each
// script in testdata/journeys says how many commands a user types for it: the lines with exec and curl. All else
// prepares files, or looks at what was answered. Beside the commands of TestScripts there are:
//
//	shop                    writes products.csv, orders.csv and bought.csv, see shop
//	broker FILE             starts a broker, which takes the place of BROKER in FILE
//	curl -G URL [-d|--data-urlencode K=V]…
//	                        as curl, until the server answers
//	instock ID              wants answers that are in stock, most of the kind of ID
//	first ID                wants ID as the first answer
//	rows DIR                prints the ids and texts of the Parquet files in DIR
//	learned                 wants links that the default encoder tells better than text alone
//
// The condition torch says whether $PYTHON has PyTorch.
func TestJourneys(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: the scripts of TestScripts have the concurrency of these")
	}
	const dir = "testdata/journeys"
	scripts, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, got := 0, 0
		if _, err := fmt.Sscanf(string(text), "# %d command", &want); err != nil {
			t.Errorf("%s does not begin with the number of its commands: %v", path, err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "exec ") || strings.HasPrefix(line, "curl ") {
				got++
			}
		}
		t.Logf("%s: commands that a user types: %d", filepath.Base(path), got)
		if got != want {
			t.Errorf("%s has %d commands, and says %d", path, got, want)
		}
	}
	python := cmp.Or(os.Getenv("GIANTSTREAM_PYTHON"), "python3")
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			root, err := filepath.Abs("../../..")
			if err != nil {
				return err
			}
			addr, err := freeport.Addr(t.Context())
			if err != nil {
				return err
			}
			for k, v := range map[string]string{"NO_COLOR": "1", "PYTHON": python, "HTTP": addr,
				"EXAMPLES": filepath.Join(root, "examples"), "PYTHONPATH": filepath.Join(root, "train/torch"),
				"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"} {
				env.Setenv(k, v)
			}
			return nil
		},
		Condition: func(what string) (bool, error) {
			if what != "torch" {
				return false, fmt.Errorf("there is no condition %q", what)
			}
			out, err := exec.CommandContext(t.Context(), python, "-c", "import torch, pyarrow, numpy").CombinedOutput()
			if err != nil {
				t.Logf("%s has no PyTorch with pyarrow (GIANTSTREAM_PYTHON): %s", python, out)
			}
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"graph": graph, "shop": shop, "broker": startBroker,
			"curl": curl, "instock": inStock, "first": first, "rows": printRows, "learned": learned},
	})
}

// kindsOfShop have no word in common. Those at an even place are bought with the next one.
var kindsOfShop = []string{"tent camping poles fabric", "stove gas cooking flame", "boot leather hiking sole",
	"lamp light battery night"}

// shop writes 160 products, of which the i-th is of kind i mod 4, and a third is not in stock. The orders have a
// product together with the one of the same number of the kind that goes with it. Bought are such links among kinds.
func shop(ts *testscript.TestScript, _ bool, _ []string) {
	const items = 160
	random := rand.New(rand.NewPCG(1, 1))
	id := func(i int) string { return fmt.Sprintf("S%03d", i) }
	var products, orders, bought strings.Builder
	products.WriteString("sku,title,description,stock\n")
	orders.WriteString("order,sku,at\n")
	bought.WriteString("src,dst\n")
	for i := range items {
		words := strings.Fields(kindsOfShop[i%4])
		fmt.Fprintf(&products, "%s,%s %d,", id(i), words[0], i/4)
		for range 6 {
			fmt.Fprintf(&products, "%s ", words[random.IntN(len(words))])
		}
		fmt.Fprintf(&products, "of %d,%d\n", random.IntN(10), i/4%3)
		for range 3 {
			fmt.Fprintf(&bought, "%s,%s\n", id(i), id(4*random.IntN(items/4)+i%4^1))
		}
	}
	for o := range 800 {
		i := random.IntN(items)
		for _, item := range []int{i, i ^ 1} {
			fmt.Fprintf(&orders, "%d,%s,2026-03-%02d 10:%02d:00\n", o, id(item), 1+o%28, o%60)
		}
	}
	for name, text := range map[string]string{"products.csv": products.String(), "orders.csv": orders.String(),
		"bought.csv": bought.String()} {
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

func startBroker(ts *testscript.TestScript, _ bool, args []string) {
	b, err := broker.Start(broker.Options{Dir: ts.MkAbs("broker")})
	ts.Check(err)
	ts.Defer(func() { ts.Check(b.Close()) })
	ts.Check(os.WriteFile(ts.MkAbs(args[0]),
		[]byte(strings.ReplaceAll(ts.ReadFile(args[0]), "BROKER", b.Addrs()[0])), 0o600))
}

// curl asks until the answer is there: the pipeline may still be at its first generation.
func curl(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 || args[0] != "-G" || len(args)%2 != 0 {
		ts.Fatalf("usage: curl -G URL [-d|--data-urlencode K=V]…")
	}
	query := url.Values{}
	for _, pair := range slices.Collect(slices.Chunk(args[2:], 2)) {
		k, v, _ := strings.Cut(pair[1], "=")
		query.Add(k, v)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		body, err := get(ctx, "http://"+args[1]+"?"+query.Encode())
		if err == nil {
			_, err = ts.Stdout().Write(body)
			ts.Check(err)
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("%v", err)
		case <-again.C:
		}
	}
}

func get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s: %s", answer.Status, body))
	}
	return body, err
}

// answers are the ids in the last answer.
func answers(ts *testscript.TestScript) (ids []string) {
	var answer struct {
		Results []struct{ ID string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &answer))
	for _, r := range answer.Results {
		ids = append(ids, r.ID)
	}
	if len(ids) == 0 {
		ts.Fatalf("no results in %s", ts.ReadFile("stdout"))
	}
	return ids
}

func first(ts *testscript.TestScript, _ bool, args []string) {
	if got := answers(ts)[0]; got != args[0] {
		ts.Fatalf("the first answer is %s, not %s", got, args[0])
	}
}

func inStock(ts *testscript.TestScript, _ bool, args []string) {
	table, err := csv.NewReader(strings.NewReader(ts.ReadFile("products.csv"))).ReadAll()
	ts.Check(err)
	kind, stock := map[string]string{}, map[string]string{}
	for _, r := range table[1:] {
		kind[r[0]], _, _ = strings.Cut(r[1], " ")
		stock[r[0]] = r[3]
	}
	ids, same := answers(ts), 0
	for _, id := range ids {
		if stock[id] == "0" || stock[id] == "" {
			ts.Fatalf("%s is not in stock", id)
		}
		if kind[id] == kind[args[0]] {
			same++
		}
	}
	if len(ids) < 5 || 2*same <= len(ids) {
		ts.Fatalf("%d of %d answers are a %s: %v", same, len(ids), kind[args[0]], ids)
	}
}

func printRows(ts *testscript.TestScript, _ bool, args []string) {
	type row struct {
		ID   string `parquet:"node_id"`
		Text string `parquet:"text"`
	}
	parts, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.parquet"))
	ts.Check(err)
	var all []string
	for _, part := range parts {
		data, err := os.ReadFile(part)
		ts.Check(err)
		read, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
		ts.Check(err)
		for _, r := range read {
			all = append(all, r.ID+" "+r.Text)
		}
	}
	slices.Sort(all)
	fmt.Fprintf(ts.Stdout(), "%s\n%d rows\n", strings.Join(all, "\n"), len(all))
}

func learned(ts *testscript.TestScript, _ bool, _ []string) {
	var all []struct {
		Encoder string
		Runs    []struct{ Links struct{ AUC float64 } }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	auc := map[string]float64{}
	for _, e := range all {
		for _, r := range e.Runs {
			auc[e.Encoder] += r.Links.AUC / float64(len(e.Runs))
		}
	}
	if auc["lsa"] == 0 || auc["hybrid"] < auc["lsa"]+0.2 {
		ts.Fatalf("links that were hidden: %v", auc)
	}
}
