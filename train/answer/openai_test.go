package answer

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"giantstream/internal/vector"
)

// embedded is an answer in OpenAI's shape.
type embedded struct {
	Object, Model string
	Data          []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	Error struct{ Message, Type string }
}

// Clients of OpenAI get the embeddings that /embed gives, as numbers or as bytes, and their first dimensions alone.
func TestOpenAIEmbeddings(t *testing.T) {
	w := newWorld(t, someShop(), nil)
	h := Handler(w.Catalog, Serving{})
	texts := []string{w.shop.Source[1].Text, "???", w.shop.Source[2].Text}
	all, err := w.Embed(texts, nil)
	plain, dim := all.Vectors, all.Dim
	if err != nil || plain[0] == nil || plain[1] != nil {
		t.Fatalf("%v, %v", plain, err)
	}
	ask := func(body string) (code int, got embedded) {
		t.Helper()
		code, answer := askGoesWith(t, h, "POST", OpenAIPath, body)
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		return code, got
	}
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, dims := range []int{0, 3} {
		for _, encoding := range []string{"", "float", "base64"} {
			body := fmt.Sprintf(`{"model":"any","user":"u","input":%s`, input)
			if dims > 0 {
				body += fmt.Sprintf(`,"dimensions":%d`, dims)
			}
			if encoding != "" {
				body += fmt.Sprintf(`,"encoding_format":%q`, encoding)
			}
			code, got := ask(body + "}")
			if code != 200 || got.Object != "list" || got.Model != "giantstream-1" || len(got.Data) != 3 ||
				got.Usage.Prompt < 10 || got.Usage.Total != got.Usage.Prompt {
				t.Fatalf("%s: %d %+v", body, code, got)
			}
			for i, one := range got.Data {
				want := make([]float32, dim)
				copy(want, plain[i])
				if dims > 0 {
					want = want[:dims]
					vector.Normalize(want)
				}
				if v := numbersOf(t, one.Embedding, encoding); one.Index != i || one.Object != "embedding" ||
					!slices.Equal(v, want) {
					t.Errorf("%s: text %d: %v, want %v", body, i, v, want)
				}
			}
		}
	}
	if code, got := ask(`{"input":"one text"}`); code != 200 || len(got.Data) != 1 || got.Usage.Prompt != 2 {
		t.Errorf("one text: %d %+v", code, got)
	}
	many := strings.Repeat(`"x",`, maxInputs)
	for body, want := range map[string]string{
		`{`:                            "the request",
		`{}`:                           "input is missing",
		`{"input":null}`:               "input is missing",
		`{"input":[[1,2],[3]]}`:        "check_embedding_ctx_length=False",
		`{"input":[1,2]}`:              "check_embedding_ctx_length=False",
		`{"input":[]}`:                 "from 1 to 2048",
		`{"input":[` + many + `""]}`:   "2049 texts",
		`{"input":"x","dimensions":0}`: "from 1 to",
		fmt.Sprintf(`{"input":"x","dimensions":%d}`, dim+1): "from 1 to",
		`{"input":"x","encoding_format":"hex"}`:             "neither float nor base64",
	} {
		if code, got := ask(body); code != 400 || !strings.Contains(got.Error.Message, want) ||
			got.Error.Type != "invalid_request_error" {
			t.Errorf("%.60s: %d %+v, want %s", body, code, got.Error, want)
		}
	}
	w.now.Store(nil)
	if code, got := ask(`{"input":"x"}`); code != 503 || got.Error.Type != "server_error" {
		t.Errorf("before there is a generation: %d %+v", code, got.Error)
	}
}

// A client that may not have texts encoded gets answers to what has none, and its refusals have the shape of the path.
func TestTextsAreEncodedForThoseWhoMay(t *testing.T) {
	w := newWorld(t, someShop(), nil)
	h := Handler(w.Catalog, Serving{Encodes: func(r *http.Request) error {
		if r.Header.Get("X-May") == "" {
			return errors.New("not for you")
		}
		return nil
	}})
	for body, want := range map[string]int{
		`{"id":"node-0001"}`:                                     200,
		`{"text":"secret words"}`:                                403,
		`{"id":"node-0001","explain":true}`:                      403,
		`{"like":[{"id":"node-0001"},{"text":"x","weight":-1}]}`: 403,
	} {
		code, got := askGoesWith(t, h, "POST", "/similar", body)
		if code != want || want == 403 && got != `{"error":"not for you"}`+"\n" {
			t.Errorf("%s: %d %s", body, code, got)
		}
		code, got = askGoesWith(t, h, "POST", "/similar", `{"questions":[`+body+`]}`)
		refused := strings.Contains(got, `{"status":403,"error":"not for you"}`)
		if code != 200 || refused != (want == 403) {
			t.Errorf("in a list, %s: %d %s", body, code, got)
		}
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/similar", strings.NewReader(body))
		r.Header.Set("X-May", "yes")
		answer := httptest.NewRecorder()
		if h.ServeHTTP(answer, r); answer.Code == 403 {
			t.Errorf("%s by one who may: %s", body, answer.Body)
		}
	}
	for path, want := range map[string]string{"/similar": `{"error":"why"}`,
		OpenAIPath: `{"error":{"code":null,"message":"why","param":null,"type":"invalid_request_error"}}`} {
		answer := httptest.NewRecorder()
		if Refuse(path)(answer, "why", 429); answer.Code != 429 || answer.Body.String() != want+"\n" {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

func numbersOf(t *testing.T, data json.RawMessage, encoding string) (v []float32) {
	t.Helper()
	if encoding != "base64" {
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for len(b) > 0 {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		b = b[4:]
	}
	return v
}

// openAIClient asks as programs do that know OpenAI alone, and prints what they get.
const openAIClient = `
import json, sys
from langchain_openai import OpenAIEmbeddings
from llama_index.embeddings.openai import OpenAIEmbedding
from openai import BadRequestError, OpenAI
url, texts = sys.argv[1], json.loads(sys.argv[2])
client = OpenAI(base_url=url, api_key="none", max_retries=0)
got = client.embeddings.create(model="any", input=texts)
short = client.embeddings.create(model="any", input=texts[0], dimensions=3, encoding_format="float")
try:
    client.embeddings.create(model="any", input=[[1, 2]])
    refused = ""
except BadRequestError as e:
    refused = e.message
chain = OpenAIEmbeddings(model="any", base_url=url, api_key="none", check_embedding_ctx_length=False)
llama = OpenAIEmbedding(model_name="any", api_base=url, api_key="none", max_retries=0)
print(json.dumps({"chain": chain.embed_documents(texts), "llama": llama.get_text_embedding_batch(texts),
                  "query": llama.get_query_embedding(texts[0]), "all": [d.embedding for d in got.data],
                  "short": short.data[0].embedding, "model": got.model, "tokens": got.usage.total_tokens,
                  "refused": refused}))
`

// The official Python client of OpenAI, LangChain's and LlamaIndex's get the same embeddings.
func TestOpenAIClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || exec.CommandContext(t.Context(), python, "-c",
		"import langchain_openai, llama_index.embeddings.openai, openai").Run() != nil {
		t.Skip("there is no python3 with these: pip install openai langchain-openai llama-index-embeddings-openai")
	}
	w := newWorld(t, someShop(), nil)
	server := httptest.NewServer(Handler(w.Catalog, Serving{}))
	defer server.Close()
	texts := []string{w.shop.Source[1].Text, w.shop.Source[2].Text}
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c", openAIClient,
		server.URL+strings.TrimSuffix(OpenAIPath, "/embeddings"), string(input)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got struct {
		All, Chain, Llama [][]float32
		Short, Query      []float32
		Model, Refused    string
		Tokens            int
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all, err := w.Embed(texts, nil)
	want := all.Vectors
	if err != nil || len(got.All) != len(want) || !slices.EqualFunc(got.All, want, slices.Equal) ||
		!slices.EqualFunc(got.Chain, want, slices.Equal) || !slices.EqualFunc(got.Llama, want, slices.Equal) ||
		!slices.Equal(got.Query, want[0]) || len(got.Short) != 3 ||
		got.Model != "giantstream-1" || got.Tokens < 2 ||
		!strings.Contains(got.Refused, "check_embedding_ctx_length") {
		t.Errorf("%+v, %v", got, err)
	}
}
