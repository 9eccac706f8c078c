package answer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"giantstream/sink/embedding"
	"giantstream/train/answer/filter"
)

// OpenAIPath is where clients of OpenAI's embeddings API ask, whose base URL is what stands before /embeddings.
const OpenAIPath = "/v1/embeddings"

const (
	maxInputs    = 2048    // texts of a request, as at OpenAI
	maxInputBody = 8 << 20 // bytes of these
)

// openAI answers as OpenAI's embeddings API does. Any model is as good: the encoder of the served generation answers,
// and the answer's model names it. A text of which the encoder knows nothing has a vector of zeros, since clients
// expect one for each text.
func openAI(a *asking, _ *http.Request) (any, error) {
	var q struct {
		Input      json.RawMessage `json:"input"`
		Dimensions *int            `json:"dimensions"`
		Encoding   string          `json:"encoding_format"`
	}
	if err := json.Unmarshal(a.body, &q); err != nil { // fields that it does not know are of other models
		return nil, badRequest{fmt.Errorf("the request: %w", filter.WrongType(err))}
	}
	texts, err := inputsOf(q.Input)
	if err != nil {
		return nil, badRequest{err}
	}
	if q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64" {
		return nil, badRequest{fmt.Errorf("encoding_format %q is neither float nor base64", q.Encoding)}
	}
	if err := checkTexts("input", texts); err != nil {
		return nil, err
	}
	embedded, err := a.Embed(texts, a.vectors)
	if err != nil {
		return nil, err
	}
	a.without = embedded.Without
	a.note(0, len(texts), 0, len(texts), nil)
	dim := embedded.Dim
	if q.Dimensions != nil {
		if dim = *q.Dimensions; dim < 1 || dim > embedded.Dim {
			return nil, badRequest{fmt.Errorf("dimensions is %d; the encoder has from 1 to %d", dim, embedded.Dim)}
		}
	}
	return openAIReply(&embedded, texts, dim, q.Encoding == "base64")
}

// openAIReply is the answer with the first dim numbers of embeddings.
func openAIReply(embedded *Embedded, texts []string, dim int, inBase64 bool) (any, error) {
	type item struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	type usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	var out struct {
		Object string `json:"object"`
		Data   []item `json:"data"`
		Model  string `json:"model"`
		Usage  usage  `json:"usage"`
	}
	out.Object, out.Model = "list", fmt.Sprintf("giantstream-%d", embedded.Generation)
	narrow := embedding.Format{Dim: dim}
	for i, v := range embedded.Vectors {
		if v = narrow.Narrow(embedding.Record{Vector: v, Type: embedding.Float32}).Vector; v == nil {
			v = make([]float32, dim)
		}
		one := item{"embedding", i, v}
		if inBase64 {
			b, err := binary.Append(nil, binary.LittleEndian, v)
			if err != nil {
				return nil, err
			}
			one.Embedding = base64.StdEncoding.EncodeToString(b)
		}
		out.Data = append(out.Data, one)
		out.Usage.Prompt += len(strings.Fields(texts[i]))
	}
	out.Usage.Total = out.Usage.Prompt
	return out, nil
}

// inputsOf reads one text or a list of texts.
func inputsOf(input json.RawMessage) (texts []string, err error) {
	if len(input) == 0 || bytes.Equal(input, []byte("null")) {
		return nil, errors.New("input is missing: a text, or a list of texts")
	}
	var one string
	if json.Unmarshal(input, &one) == nil {
		return []string{one}, nil
	}
	if err := json.Unmarshal(input, &texts); err != nil || ambiguity(input) != nil {
		return nil, errors.New("input is neither a text nor a list of texts. Lists of tokens are of another " +
			"encoder's vocabulary; with LangChain's OpenAIEmbeddings, check_embedding_ctx_length=False sends texts")
	}
	if len(texts) < 1 || len(texts) > maxInputs {
		return nil, fmt.Errorf("input has %d texts; there can be from 1 to %d", len(texts), maxInputs)
	}
	return texts, nil
}

// openAIError is an error in the shape of OpenAI's API.
func openAIError(err error, status int) any {
	kind := "invalid_request_error"
	if status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	return map[string]any{"error": map[string]any{"message": err.Error(), "type": kind, "param": nil, "code": nil}}
}
