package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"giantstream/sink"
	"giantstream/train/generation"
)

// ParseGeneration parses a generation's number.
func ParseGeneration(arg string) (int64, error) {
	g, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || g < 1 {
		return 0, UsageError(fmt.Errorf("%q is no number of a generation, which is 1 or more", arg))
	}
	return g, nil
}

// AboutGeneration completes a command about one generation, which --generation chooses. look does
// the command's work.
func (a *App) AboutGeneration(cmd *cobra.Command,
	look func(context.Context, *Pipeline, *generation.Doc) error) *cobra.Command {
	var (
		flags  PipelineFlags
		number int64
	)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		pipe, err := a.Open(cmd.Context(), &flags)
		if err != nil {
			return err
		}
		doc, err := FindGeneration(cmd.Context(), pipe.Store, number)
		if err != nil {
			return err
		}
		return look(cmd.Context(), pipe, doc)
	}
	flags.Register(cmd)
	cmd.Flags().Int64VarP(&number, "generation", "g", 0, "generation `number` (default: the newest that is ready)")
	return cmd
}

// FindGeneration returns a generation by number, for 0 the newest ready one.
func FindGeneration(ctx context.Context, store sink.Store, number int64) (*generation.Doc, error) {
	if number > 0 {
		doc, err := generation.Load(ctx, store, number)
		if errors.Is(err, generation.ErrNone) {
			have, listErr := generation.Numbers(ctx, store)
			return nil, errors.Join(fmt.Errorf("there is no generation %d; the store has %v", number, have), listErr)
		}
		return doc, err
	}
	doc, err := generation.Current(ctx, store)
	if errors.Is(err, generation.ErrNone) {
		return nil, fmt.Errorf("%s has no finished generation yet: 'giantstream run --until-idle' makes one",
			store.URL())
	}
	return doc, err
}
