package generations

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/console"
	"giantstream/train/answer"
	"giantstream/train/answer/filter"
)

// wantedFlags say which answers are wanted.
type wantedFlags struct {
	count, offset        int
	where, distinct      string
	exclude, excludeSame []string
	show                 []string
	questions            string
	asJSON               bool
}

func (f *wantedFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&f.count, "count", "k", 10, "how many")
	cmd.Flags().IntVar(&f.offset, "offset", 0, "leave out so many answers before the first")
	cmd.Flags().StringArrayVar(&f.exclude, "exclude", nil, "do not answer the item with this `ID`; may be repeated")
	cmd.Flags().StringSliceVar(&f.excludeSame, "exclude-same", nil, "do not answer items that share a value of\n"+
		"one of these `ATTRIBUTES` with an item asked about")
	cmd.Flags().StringVar(&f.distinct, "distinct", "", "answer one item at most for each value of this `ATTRIBUTE`")
	cmd.Flags().StringVar(&f.where, "where", "", "answer only nodes that match this `FILTER` of attributes, such as\n"+
		`'price<50 and stock>0 and not category^="Sale"'`)
	cmd.Flags().StringSliceVar(&f.show, "show", nil, "show these `ATTRIBUTES` of the answers, separated by commas")
	cmd.Flags().StringVar(&f.questions, "questions", "", "answer the questions of this `FILE` (- for the\n"+
		"standard input): JSON as the service takes it, one a line;\nanswers are JSON, one a line")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON, with whole texts")
}

func (f *wantedFlags) read() (w answer.Wanted, err error) {
	if f.count < 1 {
		return w, fmt.Errorf("--count is %d; it must be 1 or more", f.count)
	}
	if f.offset < 0 {
		return w, fmt.Errorf("--offset is %d; it must be 0 or more", f.offset)
	}
	w = answer.Wanted{K: f.count, Offset: f.offset, Exclude: f.exclude, ExcludeSame: f.excludeSame,
		Distinct: f.distinct, Show: f.show}
	if f.where != "" {
		w.Where, err = filter.Parse(f.where)
	}
	return w, err
}

// columns are the attributes to show as cells of a table, each with a tab behind it.
func (f *wantedFlags) columns(attributes map[string]any) string {
	var b strings.Builder
	for _, name := range f.show {
		if v, ok := attributes[name]; ok {
			text, is := v.(string)
			if !is {
				data, _ := json.Marshal(v) // numbers, booleans and lists of strings
				text = string(data)
			}
			b.WriteString(console.Plain(text))
		}
		b.WriteByte('\t')
	}
	return b.String()
}
