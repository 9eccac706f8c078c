package preview

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Texts describes the texts of nodes. Lengths are in characters, of texts that are not empty.
type Texts struct {
	Nodes  int64 `json:"nodes"`
	Empty  int64 `json:"empty"`
	Median int   `json:"median_length"`
	P90    int   `json:"p90_length"`
	Max    int   `json:"max_length"`
	// Numbers is how many are lists of numbers, as a vector is that was taken for a text.
	Numbers int64 `json:"numbers,omitempty"`
	// Scripts are the shares of the letters, most frequent first.
	Scripts []Share `json:"scripts,omitempty"`
	// Languages are a guess by frequent words, for Latin script: shares of the texts that have any.
	Languages []Share `json:"languages,omitempty"`
}

// Share is a part of a whole, from 0 to 1.
type Share struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// textCounts collects Texts.
type textCounts struct {
	empty     int64
	numbers   int64
	lengths   []int
	scripts   map[string]int64
	languages map[string]int64
}

// maxLetters is how many bytes of a text are examined for scripts and languages.
const maxLetters = 2000

// scripts are those that a preview distinguishes. Japanese is Han with Kana.
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Latin", unicode.Latin}, {"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Arabic", unicode.Arabic},
	{"Hebrew", unicode.Hebrew}, {"Han", unicode.Han}, {"Kana", unicode.Hiragana}, {"Kana", unicode.Katakana},
	{"Hangul", unicode.Hangul}, {"Thai", unicode.Thai}, {"Devanagari", unicode.Devanagari},
}

// frequent words by language. Words that several of these languages have count for all of them.
var frequent = map[string][]string{
	"English":    strings.Fields("the and of to for with is this that from by are"),
	"German":     strings.Fields("der die das und mit für ist von den ein eine nicht"),
	"French":     strings.Fields("le la les des et pour avec est une du dans sur"),
	"Spanish":    strings.Fields("el la los las y para con es una del por en"),
	"Italian":    strings.Fields("il la gli e per con di una del che della sono"),
	"Portuguese": strings.Fields("o a os as e para com uma do da em não"),
	"Dutch":      strings.Fields("de het een en van met voor is niet op zijn te"),
}

func (t *textCounts) add(text string) {
	if strings.TrimSpace(text) == "" {
		t.empty++
		return
	}
	t.lengths = append(t.lengths, utf8.RuneCountInString(text))
	if t.scripts == nil {
		t.scripts, t.languages = map[string]int64{}, map[string]int64{}
	}
	text = text[:min(len(text), maxLetters)]
	if listsNumbers(text) {
		t.numbers++
	}
	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}
		name := "other"
		for _, s := range scripts {
			if unicode.Is(s.table, r) {
				name = s.name
				break
			}
		}
		t.scripts[name]++
	}
	if language := languageOf(text); language != "" {
		t.languages[language]++
	}
}

// listsNumbers reports whether nearly all words of a text are numbers, and many.
func listsNumbers(text string) bool {
	const many = 16
	words := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",;[]()|", r)
	})
	numbers := 0
	for _, w := range words {
		if _, err := strconv.ParseFloat(w, 64); err == nil {
			numbers++
		}
	}
	return numbers >= many && 10*numbers >= 9*len(words)
}

// Warning says that texts are vectors, "" if hardly any is.
func (t *Texts) Warning() string {
	if t.Numbers == 0 || 10*t.Numbers < t.Nodes-t.Empty {
		return ""
	}
	return fmt.Sprintf("%d of %d texts are lists of numbers, of which nothing can be learned as a text: a vector goes "+
		"in with --vector NAME=FIELD:LENGTH (ingest.nodes.vectors)", t.Numbers, t.Nodes)
}

// languageOf returns the language that has most of the words, "" if none has two or several have as
// many.
func languageOf(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	best, most, tie := "", 1, false
	for _, language := range slices.Sorted(maps.Keys(frequent)) {
		n := 0
		for _, w := range words {
			if slices.Contains(frequent[language], w) {
				n++
			}
		}
		switch {
		case n > most:
			best, most, tie = language, n, false
		case n == most:
			tie = true
		}
	}
	if tie {
		return ""
	}
	return best
}

func (t *textCounts) result() Texts {
	out := Texts{Nodes: int64(len(t.lengths)) + t.empty, Empty: t.empty, Numbers: t.numbers, Scripts: shares(t.scripts),
		Languages: shares(t.languages)}
	if n := len(t.lengths); n > 0 {
		slices.Sort(t.lengths)
		out.Median, out.P90, out.Max = t.lengths[n/2], t.lengths[n*9/10], t.lengths[n-1]
	}
	return out
}

// shares returns the shares of counts, largest first, those below a hundredth left out.
func shares(counts map[string]int64) (out []Share) {
	var sum int64
	for _, n := range counts {
		sum += n
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if share := float64(counts[name]) / float64(sum); share >= 0.01 {
			out = append(out, Share{name, share})
		}
	}
	slices.SortStableFunc(out, func(a, b Share) int {
		switch {
		case a.Share > b.Share:
			return -1
		case a.Share < b.Share:
			return 1
		}
		return 0
	})
	return out
}
