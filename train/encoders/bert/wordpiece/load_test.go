package wordpiece

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const vocabFile = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nÉ\né\ne\n中文\n"

func tokenizerJSON(change ...string) string {
	return strings.NewReplacer(change...).Replace(`{"added_tokens":[{"content":"[SEP]"}],
"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,
"lowercase":true},
"pre_tokenizer":{"type":"BertPreTokenizer"},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"e":3,"é":4,"É":5}}}`)
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name                 string
		vocab, config, whole string
		text                 string
		want                 []int32 // between [CLS] and [SEP]
	}{
		{"vocab.txt alone is uncased", vocabFile, "", "", "É", []int32{7}},
		{"lines may end in CR LF", strings.ReplaceAll(vocabFile, "\n", "\r\n"), "", "", "É", []int32{7}},
		{"cased", vocabFile, `{"do_lower_case":false}`, "", "É", []int32{5}},
		{"cased, accents stripped", vocabFile, `{"do_lower_case":false,"strip_accents":true}`, "", "é", []int32{7}},
		{"uncased, accents kept", vocabFile, `{"do_lower_case":true,"strip_accents":false}`, "", "É", []int32{6}},
		{"ideographs together", vocabFile, `{"tokenize_chinese_chars":false}`, "", "中文", []int32{8}},
		{"tokenizer.json alone", "", "", tokenizerJSON(), "É", []int32{3}},
		{"tokenizer.json, cased", "", "", tokenizerJSON(`"lowercase":true`, `"lowercase":false`), "É", []int32{5}},
		{"the configuration overrules", "", `{"do_lower_case":false}`, tokenizerJSON(), "É", []int32{5}},
		{"vocab.txt overrules", vocabFile, "", tokenizerJSON(), "É", []int32{7}},
	} {
		tok, err := Load(dir(c.vocab, c.config, c.whole))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := tok.Encode(c.text, 8, nil)
		if got = got[1 : len(got)-1]; !slices.Equal(got, c.want) {
			t.Errorf("%s: %q is %v, want %v", c.name, c.text, got, c.want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		name                 string
		vocab, config, whole string
		want                 error
	}{
		{"no vocabulary", "", "{}", "", fs.ErrNotExist},
		{"no [CLS]", "[UNK]\n[SEP]\n", "", "", ErrUnsupported},
		{"byte pairs", "", "", tokenizerJSON(`"WordPiece"`, `"BPE"`), ErrUnsupported},
		{"other normalizer", "", "", tokenizerJSON("BertNormalizer", "NFC"), ErrUnsupported},
		{"other words", "", "", tokenizerJSON("BertPreTokenizer", "Whitespace"), ErrUnsupported},
		{"more special tokens", "", "", tokenizerJSON(`"content":"[SEP]"`, `"content":"<url>"`), ErrUnsupported},
		{"ids with gaps", "", "", tokenizerJSON(`"e":3`, `"e":30`), ErrUnsupported},
		{"an id twice", "", "", tokenizerJSON(`"e":3`, `"e":4`), ErrUnsupported},
		{"no basic tokenization", vocabFile, `{"do_basic_tokenize":false}`, "", ErrUnsupported},
	} {
		if _, err := Load(dir(c.vocab, c.config, c.whole)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if _, err := Load(dir(vocabFile, "{", "")); err == nil {
		t.Error("a configuration that is no JSON was accepted")
	}
}

func dir(vocab, config, whole string) fs.FS {
	d := fstest.MapFS{}
	for name, data := range map[string]string{vocabName: vocab, configName: config, tokenizerName: whole} {
		if data != "" {
			d[name] = &fstest.MapFile{Data: []byte(data)}
		}
	}
	return d
}

func FuzzLoad(f *testing.F) {
	f.Add(vocabFile, `{"do_lower_case":false}`, "")
	f.Add("", "", tokenizerJSON())
	f.Fuzz(func(t *testing.T, vocab, config, whole string) {
		tok, err := Load(dir(vocab, config, whole))
		if err == nil {
			tok.Encode("Stainless Steel é中文", 8, nil)
		}
	})
}

func TestFilesMakeTheSameTokenizer(t *testing.T) {
	for _, o := range []Options{Uncased(), {SpaceCJK: true, MaxWordRunes: 100},
		{Lower: true, SpaceCJK: true, MaxWordRunes: 5}} {
		want, err := New([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "é", "e", "##e", "E", "中", "e"}, o)
		if err != nil {
			t.Fatal(err)
		}
		files, err := want.Files()
		if err != nil {
			t.Fatal(err)
		}
		dir := fstest.MapFS{}
		for name, data := range files {
			dir[name] = &fstest.MapFile{Data: data}
		}
		got, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got.options != o || !slices.Equal(got.vocab, want.vocab) {
			t.Errorf("options %+v and %q, want %+v and %q", got.options, got.vocab, o, want.vocab)
		}
	}
}
