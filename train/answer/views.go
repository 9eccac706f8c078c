package answer

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"giantstream/sink/embedding"
)

// WithoutHeader of an answer in OpenAI's shape names the view that some of its texts lack.
const WithoutHeader = "Giantstream-Without"

// TextModel has vectors of texts, as the nodes' texts have them: a text in a question is then compared by all that a
// new node with this text is.
type TextModel struct {
	// View is the name of the vectors, and Input the number of the input that states those of nodes.
	View  string
	Input int32
	// Ask returns the vector of each text, nil for one that the model has none for. It is nil itself where it is not
	// known how to ask.
	Ask func(ctx context.Context, texts []string) ([][]float32, error)
}

var errNoModel = errors.New("nobody has said where the model is")

// VectorsOf returns the vectors that the model has of texts, none if the generation being served makes nothing of
// them. Similar and Embed take them. An error is no reason not to ask these: they say what their answers lack.
func (c *Catalog) VectorsOf(ctx context.Context, texts []string) (map[string][]float32, error) {
	s := c.now.Load()
	if s == nil || s.view == "" {
		return nil, nil
	}
	vectors := map[string][]float32{}
	var once []string
	for _, text := range texts {
		if _, twice := vectors[text]; !twice && !embedding.Blank(text) {
			vectors[text], once = nil, append(once, text)
		}
	}
	if len(once) == 0 {
		return nil, nil
	}
	if c.opts.Texts.Ask == nil {
		return nil, errNoModel
	}
	all, err := c.opts.Texts.Ask(ctx, once)
	for i, v := range all {
		vectors[once[i]] = v
	}
	return vectors, err
}

// viewOf returns the view of a generation that texts are given a vector for, "" for none.
func (c *Catalog) viewOf(s *state) string {
	if m := c.opts.Texts; m != nil && s.generation.TakesVector(m.View, m.Input) {
		return m.View
	}
	return ""
}

// embed embeds texts that are no nodes', each with its vector. without names the view that some lack, "" for none.
func (s *state) embed(texts []string, vectors [][]float32) (out []embedding.Record, without string, err error) {
	if s.view == "" {
		vectors = nil
	}
	out, err = s.generation.EmbedTexts(texts, s.view, vectors)
	for i, v := range vectors {
		if v == nil && !embedding.Blank(texts[i]) {
			without = s.view
		}
	}
	return out, without, err
}

// askModel asks the model for the vectors of all texts of a request at once, of as many as a request may have embedded.
func (a *asking) askModel(ctx context.Context) {
	s := a.now.Load()
	if s == nil || s.view == "" || a.encodes != nil && a.encodes() != nil {
		return
	}
	texts := slices.DeleteFunc(textsOf(a.body), tooLong)                // which the answers refuse
	a.vectors, _ = a.VectorsOf(ctx, texts[:min(len(texts), maxInputs)]) // the answers say what they lack
}

// textsOf returns the texts of the body of a request of any kind. What is wrong with it, another will say.
func textsOf(body []byte) (texts []string) {
	type asked struct {
		Text string  `json:"text"`
		Like []liked `json:"like"`
	}
	var q struct {
		asked
		Questions []asked         `json:"questions"`
		Texts     []string        `json:"texts"`
		Input     json.RawMessage `json:"input"`
	}
	_ = json.Unmarshal(body, &q)
	texts, _ = inputsOf(q.Input)
	for _, one := range append(q.Questions, q.asked) {
		texts = append(texts, one.Text)
		for _, like := range one.Like {
			if like.Text != nil {
				texts = append(texts, *like.Text)
			}
		}
	}
	return append(texts, q.Texts...)
}
