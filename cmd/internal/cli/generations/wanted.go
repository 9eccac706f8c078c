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
	count int
	where string
	show  []string
}

func (f *wantedFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&f.count, "count", "k", 10, "how many")
	cmd.Flags().StringVar(&f.where, "where", "", "answer only nodes that match this `FILTER` of attributes, such as\n"+
		`'price<50 and stock>0 and not category^="Sale"'`)
	cmd.Flags().StringSliceVar(&f.show, "show", nil, "show these `ATTRIBUTES` of the answers, separated by commas")
}

func (f *wantedFlags) read() (w answer.Wanted, err error) {
	if f.count < 1 {
		return w, fmt.Errorf("--count is %d; it must be 1 or more", f.count)
	}
	w = answer.Wanted{K: f.count, Show: f.show}
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
