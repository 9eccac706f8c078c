package e2e_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"giantstream/ingest/client"
	"giantstream/internal/freeport"
	"giantstream/sink/vectordb/pgvector/pgserver"
)

// mostSteps is how many commands a user types at most.
const mostSteps = 10

// The commands of examples/debezium/README.md, typed into one shell on real servers, lead from a shop's tables to a
// view of their vectors that equals them, while the shop changes its products, a worker is killed and the mapping
// changes.
func TestRealDebeziumJourney(t *testing.T) {
	connect, brokers := os.Getenv("GIANTSTREAM_REAL_CONNECT"), os.Getenv("GIANTSTREAM_REAL_KAFKA")
	if connect == "" || brokers == "" {
		t.Skip("needs Kafka Connect with Debezium: cmd/dev/test-real debezium")
	}
	server := pgserver.Start(t)
	address := server.Database(t)
	db, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := "test-" + strings.ToLower(rand.Text()[:8])
	replace := []string{"pipeline: shop", "pipeline: " + name, "shop.public.", name + ".public.", "shop.edges",
		name + ".edges", "shop.embeddings", name + ".embeddings", `"name": "shop"`, `"name": "` + name + `"`,
		`"topic.prefix": "shop"`, `"topic.prefix": "` + name + `"`,
		"postgres:postgres@localhost:5432/shop", db.User.String() + "@" + db.Host + db.Path,
		`"localhost"`, `"127.0.0.1"`, `"5432"`, `"` + db.Port() + `"`, `"database.dbname": "shop"`,
		`"database.dbname": "` + strings.TrimPrefix(db.Path, "/") + `"`,
		"localhost:9092", brokers, "http://localhost:8083", connect}
	for _, port := range []string{"9464", "9465", "9466", "9467"} {
		listen, err := freeport.Addr(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		replace = append(replace, "localhost:"+port, listen)
	}
	j := &journey{t: t, dir: t.TempDir(), began: time.Now()}
	steps := j.unpack("../../examples/debezium", strings.NewReplacer(replace...))
	typed := 0
	for _, commands := range steps {
		typed += len(commands)
	}
	typed-- // the address of the database
	if typed > mostSteps {
		t.Errorf("%d commands", typed)
	}
	c, err := client.New(client.Options{Brokers: strings.Split(brokers, ",")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeTopics(t, c, name) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		askConnect(ctx, t, http.MethodDelete, connect+"/connectors/"+name, nil)
	})

	j.open(server.Programs)
	if j.db, err = pgx.Connect(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	defer j.db.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the server ends with the test
	step := func(n int) {
		t.Helper()
		for _, command := range steps[n] {
			j.typed(command)
		}
	}
	for n := range 5 { // the address, the shop, Debezium, workers, the sink
		step(n)
	}
	j.await("the view has all products", equalsTable)
	step(5)
	j.similar()
	j.shopping(0)
	step(6) // the kill
	j.shopping(1)
	j.await("the view follows after the kill", equalsTable)
	before := j.number("SELECT max(generation) FROM items")
	step(7) // the other mapping
	j.shopping(2)
	step(8)
	j.await("the view has the vectors of the other mapping", equalsTable+
		fmt.Sprintf(" AND (SELECT min(generation) > %d FROM items)", before))
	for _, command := range steps[5] {
		j.typed(command)
	}
	j.similar()
	texts := map[string]string{}
	for id, row := range newestRows(t, openStore(t, filepath.Join(j.dir, "store-2"))) {
		if !row.Deleted {
			texts[id] = row.Text
		}
	}
	want := map[string]string{}
	rows, err := j.db.Query(t.Context(), "SELECT sku::text, concat_ws(E'\\n', name, description) FROM products")
	if err != nil {
		t.Fatal(err)
	}
	var id, text string
	if _, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error { want[id] = text; return nil }); err != nil {
		t.Fatal(err)
	}
	sameMap(t, "text", texts, want)
	t.Logf("%d commands in %.1f minutes, with %d products in the end", typed, time.Since(j.began).Minutes(), len(want))
}

// equalsTable asks whether the view has the products of the table, with their attributes.
const equalsTable = `SELECT NOT EXISTS (
	SELECT FROM products p FULL JOIN items i ON i.node_id = p.sku::text
	WHERE (i.price, i.stock, i.brand, i.status) IS DISTINCT FROM
		(p.price::float8, p.stock::float8, p.brand, CASE WHEN p.sku IS NULL THEN NULL ELSE 'text' END))`

// journey is a user with a shell, in a folder with the files of an example.
type journey struct {
	t     *testing.T
	dir   string
	began time.Time
	db    *pgx.Conn
	shell io.WriteCloser
	codes *bufio.Reader
	out   string // file with what the shell and what it has started print
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// unpack copies the files of an example for other addresses, and returns the commands in its README, by block.
func (j *journey) unpack(example string, addresses *strings.Replacer) (steps [][]string) {
	j.t.Helper()
	from := filepath.Join(here, example)
	files, err := os.ReadDir(from)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err != nil {
			j.t.Fatal(err)
		}
		writeFile(j.t, filepath.Join(j.dir, f.Name()), addresses.Replace(string(text)))
	}
	page, err := os.ReadFile(filepath.Join(j.dir, "README.md"))
	if err != nil {
		j.t.Fatal(err)
	}
	for _, block := range shellBlock.FindAllSubmatch(page, -1) {
		steps = append(steps, slices.Collect(strings.Lines(string(block[1]))))
	}
	return steps
}

// open starts the shell. What it has started ends with the test.
func (j *journey) open(programs string) {
	t := j.t
	t.Helper()
	j.out = filepath.Join(j.dir, "printed")
	out, err := os.Create(j.out)
	if err != nil {
		t.Fatal(err)
	}
	codes, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash") // ended below, with what it has started
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = j.dir, out, out, []*os.File{tell}
	cmd.Env = append(os.Environ(), "NO_COLOR=1",
		"PATH="+strings.Join([]string{filepath.Dir(binary), programs, os.Getenv("PATH")}, ":"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if j.shell, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err := errors.Join(err, tell.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	j.codes = bufio.NewReader(codes)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = codes.Close()
		if text, err := os.ReadFile(j.out); err == nil && t.Failed() {
			const most = 20_000
			t.Logf("the end of what was printed:\n%s", text[max(0, len(text)-most):])
		}
	})
}

// typed types a command and waits for its end.
func (j *journey) typed(command string) {
	j.t.Helper()
	command = strings.TrimSpace(command)
	began := time.Now()
	if _, err := fmt.Fprintf(j.shell, "%s\necho $? >&3\n", command); err != nil {
		j.t.Fatal(err)
	}
	code := make(chan string, 1)
	go func() {
		line, _ := j.codes.ReadString('\n') // "" is no success
		code <- strings.TrimSpace(line)
	}()
	select {
	case got := <-code:
		if got != "0" {
			j.t.Fatalf("%s: exit code %s", command, got)
		}
	case <-time.After(longest):
		j.t.Fatalf("%s: no end", command)
	}
	j.t.Logf("%5.1f s  %s", time.Since(began).Seconds(), command)
}

// await returns when a question has the answer true.
func (j *journey) await(what, question string) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), longest)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	began := time.Now()
	for {
		var yes *bool
		err := j.db.QueryRow(ctx, question, pgx.QueryExecModeExec).Scan(&yes) // the view changes under a prepared one
		if err == nil && yes != nil && *yes {
			j.t.Logf("%5.1f s  until %s", time.Since(began).Seconds(), what)
			return
		}
		select {
		case <-ctx.Done():
			j.t.Fatalf("not so: %s: %v", what, err)
		case <-again.C:
		}
	}
}

func (j *journey) number(question string) (n int64) {
	j.t.Helper()
	if err := j.db.QueryRow(j.t.Context(), question, pgx.QueryExecModeExec).Scan(&n); err != nil {
		j.t.Fatal(err)
	}
	return n
}

// shopping is what becomes of the shop's tables at a time.
func (j *journey) shopping(round int) {
	j.t.Helper()
	for _, statement := range []string{
		"UPDATE products SET price = price + 1, stock = (stock + 10) % 50 WHERE sku % 3 = $1",
		"UPDATE products SET name = name || ' new' WHERE sku % 40 = 9 + $1",
		"UPDATE products SET description = description || ' and more' WHERE sku % 40 = 19 + $1",
		"DELETE FROM order_lines WHERE order_id % 50 = $1",
		"DELETE FROM products WHERE sku % 50 = 20 + $1",
		`INSERT INTO products SELECT 1000 + 10 * $1 + i, words[1] || ' extra ' || i, 'With ' || words[2], 'brand', 9.99, i
			FROM generate_series(1, 8) i JOIN families ON family = i % 8`,
	} {
		if _, err := j.db.Exec(j.t.Context(), statement, round); err != nil {
			j.t.Fatalf("%s: %v", statement, err)
		}
	}
}

var answer = regexp.MustCompile(`(?m)^ +\d+ \| (.*?) +\| +[\d.]+ \| +\d+$`)

// similar wants most of the five products that similar.sql has answered last to be of the family of product 8.
func (j *journey) similar() {
	j.t.Helper()
	printed, err := os.ReadFile(j.out)
	if err != nil {
		j.t.Fatal(err)
	}
	answers, same := answer.FindAllStringSubmatch(string(printed), -1), 0
	for _, a := range answers[max(0, len(answers)-5):] {
		if word, _, _ := strings.Cut(a[1], " "); slices.Contains(strings.Fields("tent camping poles fabric"), word) {
			same++
		}
	}
	if same < 3 {
		j.t.Errorf("%d of the last of %v are of the family of product 8", same, answers)
	}
}
