package wordpiece

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// ErrUnsupported: the directory's tokenizer is not one that this package
// implements.
var ErrUnsupported = errors.New("unsupported tokenizer")

const (
	vocabName     = "vocab.txt"
	configName    = "tokenizer_config.json"
	tokenizerName = "tokenizer.json"

	// maxFile bounds each file; tokenizer.json of the largest multilingual
	// BERT has 3 MB.
	maxFile = 64 << 20
)

// tokenizerConfig is tokenizer_config.json; nil means that the field is missing.
type tokenizerConfig struct {
	Lower        *bool `json:"do_lower_case"`
	StripAccents *bool `json:"strip_accents"`
	SpaceCJK     *bool `json:"tokenize_chinese_chars"`
	Basic        *bool `json:"do_basic_tokenize,omitempty"`
	// MaxRunes is our own field: other programs store the limit in tokenizer.json only.
	MaxRunes int `json:"max_input_chars_per_word"`
}

// tokenizerFile is what matters of tokenizer.json.
type tokenizerFile struct {
	Added []struct {
		Content string `json:"content"`
	} `json:"added_tokens"`
	Normalizer *struct {
		Type         string `json:"type"`
		Clean        bool   `json:"clean_text"`
		SpaceCJK     bool   `json:"handle_chinese_chars"`
		StripAccents *bool  `json:"strip_accents"`
		Lower        bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer *struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type     string           `json:"type"`
		Unknown  string           `json:"unk_token"`
		Prefix   string           `json:"continuing_subword_prefix"`
		MaxRunes int              `json:"max_input_chars_per_word"`
		Vocab    map[string]int32 `json:"vocab"`
	} `json:"model"`
}

// Load makes the tokenizer of a Hugging Face model directory. The vocabulary
// is vocab.txt, or else that of tokenizer.json; options are those of
// tokenizer_config.json, then of tokenizer.json, then an uncased BERT's, which
// is the reference's order.
func Load(dir fs.FS) (*Tokenizer, error) {
	o := Uncased()
	var strip *bool
	var vocab []string

	var file tokenizerFile
	found, err := readJSON(dir, tokenizerName, &file)
	if err != nil {
		return nil, err
	}
	if found {
		if err := file.check(); err != nil {
			return nil, err
		}
		if vocab, err = file.vocab(); err != nil {
			return nil, err
		}
		n := file.Normalizer
		o.Lower, o.SpaceCJK, strip = n.Lower, n.SpaceCJK, n.StripAccents
		if file.Model.MaxRunes > 0 {
			o.MaxWordRunes = file.Model.MaxRunes
		}
	}

	var config tokenizerConfig
	if _, err := readJSON(dir, configName, &config); err != nil {
		return nil, err
	}
	if config.Basic != nil && !*config.Basic {
		return nil, fmt.Errorf("%w: %s switches basic tokenization off", ErrUnsupported, configName)
	}
	set(&o.Lower, config.Lower)
	set(&o.SpaceCJK, config.SpaceCJK)
	if config.MaxRunes > 0 {
		o.MaxWordRunes = config.MaxRunes
	}
	if config.StripAccents != nil {
		strip = config.StripAccents
	}
	o.StripAccents = o.Lower
	set(&o.StripAccents, strip)

	data, err := read(dir, vocabName)
	switch {
	case err == nil:
		vocab = ParseVocab(data)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case vocab == nil:
		return nil, fmt.Errorf("no tokenizer: neither %s nor %s is there: %w", vocabName, tokenizerName, err)
	}
	return New(vocab, o)
}

func set(option, said *bool) {
	if said != nil {
		*option = *said
	}
}

// ParseVocab splits vocab.txt: a piece per line, its id the number of the
// line, counted from 0.
func ParseVocab(data []byte) []string {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// check refuses what this package would tokenize differently.
func (f *tokenizerFile) check() error {
	switch {
	case f.Model.Type != "" && f.Model.Type != "WordPiece":
		return fmt.Errorf("%w: %s says %q, only WordPiece is implemented", ErrUnsupported, tokenizerName, f.Model.Type)
	case f.Normalizer == nil || f.Normalizer.Type != "BertNormalizer" || !f.Normalizer.Clean:
		return fmt.Errorf("%w: %s has another normalizer than a BertNormalizer that cleans text", ErrUnsupported,
			tokenizerName)
	case f.PreTokenizer == nil || f.PreTokenizer.Type != "BertPreTokenizer":
		return fmt.Errorf("%w: %s has another pre_tokenizer than BertPreTokenizer", ErrUnsupported, tokenizerName)
	case f.Model.Prefix != "" && f.Model.Prefix != continuation:
		return fmt.Errorf("%w: %s continues words by %q, only %q is implemented", ErrUnsupported, tokenizerName,
			f.Model.Prefix, continuation)
	case f.Model.Unknown != "" && f.Model.Unknown != unknown:
		return fmt.Errorf("%w: %s has %q for unknown words, only %q is implemented", ErrUnsupported, tokenizerName,
			f.Model.Unknown, unknown)
	}
	for _, a := range f.Added {
		if !slices.Contains(special[:], a.Content) {
			return fmt.Errorf("%w: %s adds the token %q to those of BERT", ErrUnsupported, tokenizerName, a.Content)
		}
	}
	return nil
}

// vocab orders the pieces by their ids.
func (f *tokenizerFile) vocab() ([]string, error) {
	pieces := make([]string, len(f.Model.Vocab))
	for p, id := range f.Model.Vocab {
		if id < 0 || int(id) >= len(pieces) || pieces[id] != "" {
			return nil, fmt.Errorf("%w: %s: the ids of %d pieces are not 0 to %d, each once", ErrUnsupported,
				tokenizerName, len(pieces), len(pieces)-1)
		}
		pieces[id] = p
	}
	return pieces, nil
}

// readJSON reports whether the file exists.
func readJSON(dir fs.FS, name string, into any) (bool, error) {
	data, err := read(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("tokenizer: %s: %w", name, err)
	}
	return true, nil
}

func read(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return data, nil
}
