package external

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"giantstream/internal/retry"
)

// Options say what to ask, and how.
type Options struct {
	// URL is where questions are posted, such as http://localhost:8080/v1/embeddings.
	URL string
	// Model is what the endpoint calls the model.
	Model string
	// Dimensions is the length of the vectors. An endpoint whose vectors are longer is asked to shorten them.
	Dimensions int
	// Key is sent as a bearer token, or as Azure's api-key to a URL with an api-version; "" for none.
	Key string
	// Batch bounds the texts of a request, 0 is 64.
	Batch int
	// Rate bounds the requests a second of this client, 0 for no bound.
	Rate float64
	// AtOnce bounds the requests at once, 0 is 4: a server that batches what comes together is kept busy by a few.
	AtOnce int
	// Timeout bounds a request and its answer, 0 is 30 s.
	Timeout time.Duration
	Log     *slog.Logger
}

const (
	// ofOneCall bounds the requests at once of a call.
	ofOneCall = 4
	// maxAnswer bounds an answer in memory.
	maxAnswer = 64 << 20
	// maxPause bounds what an endpoint may ask to wait for (Retry-After).
	maxPause = 10 * time.Minute
	// minRetry and maxRetry are the first and the longest pause after a failure.
	minRetry, maxRetry = 500 * time.Millisecond, 30 * time.Second
	// Patience is how long who asks a question waits for each batch of its texts. After a failure, none waits for rest.
	Patience, rest = 2 * time.Second, 5 * time.Second
	// leastText is the length to which a text that is refused is cut, in bytes. What is refused at that length is not
	// refused for its length.
	leastText = 64
)

// Client asks one endpoint. It is safe for concurrent use.
type Client struct {
	// Counts may be read at any time.
	Counts Counts
	// GiveUp, set before the first question, says whether Embed fails where only a person can help, in the place of
	// waiting for one; nil: it waits.
	GiveUp func() bool

	options Options
	address string // of the endpoint, for people
	http    *http.Client
	slots   chan struct{}
	loop    retry.Loop
	// shorten: the endpoint's vectors are longer than they should be, unless the request names the dimensions.
	shorten atomic.Bool

	mu   sync.Mutex
	next time.Time // when the next request may begin
	// err is why requests fail since then, nil if the last one did not.
	err   error
	since time.Time
	// refusal is what questions are answered by until then.
	refusal error
	until   time.Time
	outage  retry.Outage // of questions
}

// Counts are what a client has done.
type Counts struct {
	Requests, Failures atomic.Int64
	// Texts have a vector, Without were refused or have a vector of zeros, Cut have the vector of their beginning.
	Texts, Without, Cut atomic.Int64
	// Waited are the nanoseconds that requests waited for the rate or since the endpoint asked for it.
	Waited atomic.Int64
}

// New returns a client, which connects when it is first used.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the URL of the external model is not http(s)://host/v1/embeddings")
	}
	o.Batch, o.AtOnce, o.Timeout = cmp.Or(o.Batch, 64), cmp.Or(o.AtOnce, ofOneCall), cmp.Or(o.Timeout, 30*time.Second)
	// A redirection would take the key to another server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck // it is one
	transport.MaxIdleConnsPerHost = o.AtOnce
	c := &Client{options: o, address: u.Scheme + "://" + u.Host + u.Path, slots: make(chan struct{}, o.AtOnce),
		http: &http.Client{Transport: transport, Timeout: o.Timeout, CheckRedirect: stay}}
	c.loop = retry.Loop{Service: "the external model", Min: minRetry, Max: maxRetry, Log: o.Log}
	return c, nil
}

// Err returns why requests fail, and since when; nil if the endpoint has answered the last one.
func (c *Client) Err() (since time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.err
}

// Embed returns the vector of each text, nil for one that the endpoint has none for. It asks again for as long as the
// endpoint fails, until ctx ends or GiveUp says so.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	return c.inBatches(ctx, texts, func(ctx context.Context, some []string) (vectors [][]float32, err error) {
		err = c.loop.Do(ctx, c.address, func(ctx context.Context) error {
			vectors, err = c.ask(ctx, some)
			if e, is := errors.AsType[*StatusError](err); is && e.hint() != "" && c.GiveUp != nil {
				e.final = c.GiveUp()
			}
			return err
		})
		return vectors, err
	})
}

// Ask is Embed for somebody who waits: it asks once, with Patience. While the endpoint is away, one question in a while
// finds that out, and the others get its error at once.
func (c *Client) Ask(ctx context.Context, texts []string) ([][]float32, error) {
	if err := c.resting(); err != nil {
		return nil, err
	}
	vectors, err := c.inBatches(ctx, texts, func(ctx context.Context, some []string) ([][]float32, error) {
		ctx, cancel := context.WithTimeout(ctx, Patience)
		defer cancel()
		return c.ask(ctx, some)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = c.failed(fmt.Errorf("no answer within %v", Patience))
	}
	c.relax(err)
	return vectors, err
}

// resting returns why no question waits for the endpoint, nil if one may.
func (c *Client) resting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.refusal
	}
	return nil
}

// relax notes how a question went.
func (c *Client) relax(err error) {
	const who = "questions"
	now := time.Now()
	if err == nil {
		if lasted, over := c.outage.EndFailure(who, now); over {
			c.options.Log.Warn("the external model answers questions again", "after", lasted.Round(time.Millisecond))
		}
		return
	}
	if c.outage.Failed(who, now) {
		c.options.Log.Warn("the external model fails, and questions are answered without it", "at", c.address,
			"error", err)
	}
	if errors.Is(err, errTurn) {
		return // it has cost no time
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal, c.until = err, now.Add(rest)
}

// inBatches asks for the texts in batches.
func (c *Client) inBatches(ctx context.Context, texts []string,
	ask func(context.Context, []string) ([][]float32, error)) ([][]float32, error) {
	out := make([][]float32, len(texts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(ofOneCall)
	for from := 0; from < len(texts); from += c.options.Batch {
		to := min(from+c.options.Batch, len(texts))
		g.Go(func() error {
			vectors, err := ask(ctx, texts[from:to])
			copy(out[from:to], vectors)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, v := range out {
		if v == nil {
			c.Counts.Without.Add(1)
		} else {
			c.Counts.Texts.Add(1)
		}
	}
	return out, nil
}

// ask asks for a batch. If it is refused, it is asked for in halves, so that one text is no reason to have none.
func (c *Client) ask(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := c.request(ctx, texts)
	switch {
	case err == nil || !refused(err):
		return vectors, err
	case len(texts) == 1:
		v, err := c.askBeginning(ctx, texts[0], err)
		return [][]float32{v}, err
	}
	half := len(texts) / 2
	first, err := c.ask(ctx, texts[:half])
	if err != nil {
		return nil, err
	}
	second, err := c.ask(ctx, texts[half:])
	return append(first, second...), err
}

// askBeginning asks for the beginning of a text that was refused, shorter and shorter.
func (c *Client) askBeginning(ctx context.Context, text string, why error) ([]float32, error) {
	for len(text) > leastText {
		end := len(text) / 2
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
		vectors, err := c.request(ctx, []string{text})
		if err == nil {
			c.Counts.Cut.Add(1)
			return vectors[0], nil
		}
		if !refused(err) {
			return nil, err
		}
	}
	// If the endpoint refuses any text, it is not the text's fault.
	if _, err := c.request(ctx, []string{"text"}); err != nil {
		return nil, err
	}
	c.options.Log.Warn("the external model refuses a text, which goes without its vector", "at", c.address,
		"bytes", len(text), "error", why)
	return nil, nil
}

// question and answer are the protocol's.
type question struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
}

type answer struct {
	Data []struct {
		Index     int             `json:"index"`
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
}

// request asks once for the vectors of texts, nil for a vector of zeros.
func (c *Client) request(ctx context.Context, texts []string) ([][]float32, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := c.turn(ctx); err != nil {
		return nil, err
	}
	c.Counts.Requests.Add(1)
	shorten := c.shorten.Load()
	vectors, long, err := c.post(ctx, texts, shorten)
	if long && !shorten {
		c.shorten.Store(true)
		c.Counts.Requests.Add(1)
		vectors, _, err = c.post(ctx, texts, true)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		c.Counts.Failures.Add(1)
	}
	c.note(err)
	return vectors, err
}

func (c *Client) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.since = time.Now()
	}
	c.err = err
}

// errTurn: the rate, or what the endpoint has asked for, lets no request begin soon enough.
var errTurn = errors.New("it takes no request in time")

// turn waits until the next request may begin.
func (c *Client) turn(ctx context.Context) error {
	now := time.Now()
	c.mu.Lock()
	if c.next.Before(now) {
		c.next = now
	}
	wait := c.next.Sub(now)
	if end, is := ctx.Deadline(); is && c.next.After(end) {
		c.mu.Unlock()
		return c.failed(errTurn)
	}
	if c.options.Rate > 0 {
		c.next = c.next.Add(time.Duration(float64(time.Second) / c.options.Rate))
	}
	c.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	c.Counts.Waited.Add(int64(wait))
	return retry.Sleep(ctx, wait)
}

// pause lets no request begin before the endpoint wants one.
func (c *Client) pause(header string) {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = time.Until(at)
	}
	until := time.Now().Add(min(wait, maxPause))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next.Before(until) {
		c.next = until
	}
}

// post sends a question. long: the vectors that came are too long.
func (c *Client) post(ctx context.Context, texts []string, shorten bool) (vectors [][]float32, long bool, err error) {
	q := question{Model: c.options.Model, Input: texts}
	if shorten {
		q.Dimensions = c.options.Dimensions
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, false, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.options.URL, bytes.NewReader(body))
	if err != nil {
		return nil, false, c.failed(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "giantstream")
	switch {
	case c.options.Key == "":
	case r.URL.Query().Has("api-version"): // Azure's, which takes a bearer token for one of its directory
		r.Header.Set("api-key", c.options.Key)
	default:
		r.Header.Set("Authorization", "Bearer "+c.options.Key)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, false, c.failed(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, false, c.failed(err)
	case len(content) > maxAnswer:
		return nil, false, c.failed(fmt.Errorf("the answer has more than %d bytes", maxAnswer))
	case res.StatusCode != http.StatusOK:
		if res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable {
			c.pause(res.Header.Get("Retry-After"))
		}
		return nil, false, &StatusError{Address: c.address, Status: res.StatusCode, Said: c.said(content)}
	}
	if vectors, long, err = c.read(content, len(texts)); err != nil {
		return nil, long, c.failed(err)
	}
	return vectors, false, nil
}

// failed says where something failed, without what a URL may hold that is secret.
func (c *Client) failed(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("POST %s: %w", c.address, err)
}

// read returns the vectors of an answer, by the places of their texts. long is as in post.
func (c *Client) read(content []byte, n int) (vectors [][]float32, long bool, err error) {
	var a answer
	if err := json.Unmarshal(content, &a); err != nil {
		return nil, false, fmt.Errorf("the answer is not that of an endpoint for embeddings: %w", err)
	}
	if len(a.Data) != n {
		return nil, false, fmt.Errorf("the answer has %d vectors for %d texts", len(a.Data), n)
	}
	vectors = make([][]float32, n)
	seen := make([]bool, n)
	for _, d := range a.Data {
		if d.Index < 0 || d.Index >= n || seen[d.Index] {
			return nil, false, fmt.Errorf("the answer to %d texts has index %d twice, or out of range", n, d.Index)
		}
		seen[d.Index] = true
		var v []float32
		// A server that finds NaN says null, which Go takes for 0.
		if bytes.Contains(d.Embedding, []byte("null")) {
			return nil, false, errors.New("a vector has a number that is not finite")
		}
		if err := json.Unmarshal(d.Embedding, &v); err != nil {
			return nil, false, fmt.Errorf("a vector is no list of finite numbers: %w", err)
		}
		if len(v) != c.options.Dimensions {
			return nil, len(v) > c.options.Dimensions, fmt.Errorf("a vector of the model %q has %d numbers; "+
				"ingest.external.dimensions is %d", c.options.Model, len(v), c.options.Dimensions)
		}
		if !zero(v) {
			vectors[d.Index] = v
		}
	}
	return vectors, false, nil
}

func zero(v []float32) bool {
	for _, x := range v {
		if x != 0 {
			return false
		}
	}
	return true
}

// StatusError is an answer that is no success.
type StatusError struct {
	Address string
	Status  int
	Said    string // what the endpoint says is wrong, "" for nothing
	final   bool
}

func (e *StatusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("POST %s: %d %s: %s", e.Address, e.Status, http.StatusText(e.Status), e.Said),
		": ") + e.hint()
}

// Final implements the interface that retry.Final looks for.
func (e *StatusError) Final() bool { return e.final }

// hint says what a person can do about an answer that no other try changes, "" if one may.
func (e *StatusError) hint() string {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "; is ingest.external.api_key right?"
	case http.StatusNotFound:
		return "; are ingest.external.url and ingest.external.model right?"
	}
	return ""
}

// refused reports whether an endpoint would answer other texts.
func refused(err error) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusRequestEntityTooLarge ||
		e.Status == http.StatusUnprocessableEntity)
}

// said returns what an endpoint says is wrong, of the places where servers say it. All else may repeat the texts.
func (c *Client) said(content []byte) string {
	var a struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(content, &a) != nil {
		return ""
	}
	var e struct {
		Message string `json:"message"`
	}
	text := ""
	if json.Unmarshal(a.Error, &e) != nil {
		_ = json.Unmarshal(a.Error, &text)
	}
	said := cmp.Or(e.Message, text, a.Message)
	if c.options.Key != "" {
		said = strings.ReplaceAll(said, c.options.Key, "***")
	}
	if len(said) > 300 {
		said = strings.ToValidUTF8(said[:300], "") + "…"
	}
	return said
}
