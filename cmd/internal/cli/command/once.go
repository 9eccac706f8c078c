package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// once is a flag of one value. A second one would take the place of the first in silence, as if a field that takes
// several had been meant.
type once struct {
	pflag.Value
	given *string
}

func (o *once) Set(text string) error {
	if o.given != nil && *o.given != text {
		return fmt.Errorf("it takes one value, and %q was given before", *o.given)
	}
	if err := o.Value.Set(text); err != nil {
		return err
	}
	o.given = &text
	return nil
}

// TakeFlagsOnce refuses two values for a flag that takes one, in a command and those below it.
// A switch may be repeated.
func TakeFlagsOnce(c *cobra.Command) {
	take := func(f *pflag.Flag) {
		_, wrapped := f.Value.(*once)
		several := strings.HasSuffix(f.Value.Type(), "Slice") || strings.HasSuffix(f.Value.Type(), "Array")
		if !wrapped && !several && f.NoOptDefVal == "" {
			f.Value = &once{Value: f.Value}
		}
	}
	c.Flags().VisitAll(take)
	c.PersistentFlags().VisitAll(take)
	for _, sub := range c.Commands() {
		TakeFlagsOnce(sub)
	}
}
