package wordpiece

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Files returns the files of a model directory that make this tokenizer
// again, by name.
func (t *Tokenizer) Files() (map[string][]byte, error) {
	config, err := json.MarshalIndent(struct {
		Class string `json:"tokenizer_class"`
		tokenizerConfig
	}{
		"BertTokenizer",
		tokenizerConfig{
			Lower: &t.options.Lower, StripAccents: &t.options.StripAccents, SpaceCJK: &t.options.SpaceCJK,
			MaxRunes: t.options.MaxWordRunes,
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %s: %w", configName, err)
	}
	return map[string][]byte{
		vocabName:  []byte(strings.Join(t.vocab, "\n") + "\n"),
		configName: append(config, '\n'),
	}, nil
}
