package fit

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"giantstream/featurize/sparse"
	"giantstream/internal/race"
	"giantstream/train"
	"giantstream/train/generation/eval"
)

// invented returns n texts of invented words of shortest characters or one more, half of them of the text's
// topic, and edges between nodes of a topic. With spaces, the words are apart.
func invented(n int, alphabet []rune, shortest int, spaces string) *train.Graph {
	const topics, vocabulary, words = 12, 60, 14
	r := rand.New(rand.NewPCG(11, 5))
	word := func() string {
		out := make([]rune, shortest+r.IntN(2))
		for i := range out {
			out[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(out)
	}
	lexicon := make([][]string, topics+1) // the last one is common to all
	for t := range lexicon {
		for range vocabulary {
			lexicon[t] = append(lexicon[t], word())
		}
	}
	g := &train.Graph{Neighbours: &sparse.Matrix{Cols: n, Start: []int64{0}}}
	links := make([]map[int32]bool, n)
	for i := range n {
		var text []string
		for range words {
			t := topics
			if r.IntN(2) == 0 {
				t = i % topics
			}
			text = append(text, lexicon[t][r.IntN(vocabulary)])
		}
		g.IDs = append(g.IDs, "n"+strings.Repeat("0", 4)+string(rune('a'+i%26)))
		g.Texts, g.Classes = append(g.Texts, strings.Join(text, spaces)), append(g.Classes, "")
		links[i] = map[int32]bool{}
	}
	for i := range n {
		for range 3 {
			if j := (i + topics*(1+r.IntN(n/topics-1))) % n; j != i && j%topics == i%topics {
				links[i][int32(j)], links[j][int32(i)] = true, true
			}
		}
	}
	for i := range n {
		var row sparse.Vector
		for j := range int32(n) {
			if links[i][j] {
				row.Index = append(row.Index, j)
			}
		}
		g.Neighbours.Append(row)
	}
	return g
}

// textAUC is how well the texts alone predict hidden links.
func textAUC(t *testing.T, g *train.Graph) float64 {
	t.Helper()
	training := fitTexts(t, g, 64, resources())
	vectors, err := EmbedText(training.Projected, training.Projection.Dim(), 0)
	if err != nil {
		t.Fatal(err)
	}
	known, hidden := eval.Split(g, 0.1, 1)
	m, err := eval.Links(vectors, training.Projection.Dim(), known, hidden, eval.LinkOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m.AUC
}

// A text says as much without spaces between its words as with them, in scripts that have none.
func TestWordsNeedNoSpaces(t *testing.T) {
	race.SkipComputing(t)
	for name, first := range map[string]rune{"Han": 0x4E00, "Hiragana": 0x3041, "Thai": 0x0E01} {
		var alphabet []rune
		for i := range 400 {
			switch {
			case name == "Han", i < 83 && name == "Hiragana", i < 46 && name == "Thai":
				alphabet = append(alphabet, first+rune(i))
			}
		}
		shortest := 2
		if name != "Han" {
			shortest = 4 // syllables and sounds
		}
		with := textAUC(t, invented(1200, alphabet, shortest, " "))
		without := textAUC(t, invented(1200, alphabet, shortest, ""))
		t.Logf("%s: AUC %.3f with spaces, %.3f without", name, with, without)
		if without < with-0.02 {
			t.Errorf("%s: AUC %.3f without spaces, %.3f with", name, without, with)
		}
	}
}

// named returns nodes that name a language and a country in a third language, as Unicode's CLDR has
// the names, and edges between nodes of a country.
func named(in language.Tag, spaces string) *train.Graph {
	const countries = "AT AU BR CA CH CL CN CO CZ DE DK EG ES FI FR GB GR HU ID IE IL IN IT JP KE KH KR LA MM MX MY NG " +
		"NL NO NZ PE PH PK PL PT"
	const languages = "am ar bg bn cs da de el en es et fa fi fr gu he hi hr hu id it ja km kn ko lo"
	regions := strings.Fields(countries)
	r := rand.New(rand.NewPCG(3, 9))
	g := &train.Graph{}
	links := []map[int32]bool{}
	for _, l := range strings.Fields(languages) {
		for _, c := range regions {
			text := display.Languages(in).Name(language.MustParse(l)) + spaces +
				display.Regions(in).Name(language.MustParseRegion(c))
			g.IDs, g.Classes = append(g.IDs, l+c), append(g.Classes, c)
			g.Texts, links = append(g.Texts, text), append(links, map[int32]bool{})
		}
	}
	n := len(g.IDs)
	g.Neighbours = &sparse.Matrix{Cols: n, Start: []int64{0}}
	for i := range n {
		for range 2 {
			if j := (i + len(regions)*(1+r.IntN(n/len(regions)-1))) % n; j != i {
				links[i][int32(j)], links[j][int32(i)] = true, true
			}
		}
	}
	for i := range n {
		var row sparse.Vector
		for j := range int32(n) {
			if links[i][j] {
				row.Index = append(row.Index, j)
			}
		}
		g.Neighbours.Append(row)
	}
	return g
}

// Real names in scripts without spaces predict links as well when they are run together.
func TestNamesNeedNoSpaces(t *testing.T) {
	race.SkipComputing(t)
	for _, in := range []language.Tag{language.Chinese, language.Japanese, language.Thai, language.Lao, language.Khmer,
		language.Burmese} {
		with, without := textAUC(t, named(in, " ")), textAUC(t, named(in, ""))
		t.Logf("%v: AUC %.3f with spaces, %.3f without", in, with, without)
		if without < with-0.02 {
			t.Errorf("%v: AUC %.3f without spaces, %.3f with", in, without, with)
		}
	}
}
