package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/sinks"
	"giantstream/cmd/internal/wiring"
	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/forget"
)

// forgotten is what `forget` prints. It has no id and no text.
type forgotten struct {
	Store string `json:"store"`
	IDs   int    `json:"ids"`
	// Live nodes and Links to any of the nodes, as the newest rows have them.
	Live  int `json:"live"`
	Links int `json:"links"`
	// Texts are those that the scan has looked for.
	Texts int `json:"texts"`
	// Sent records delete both, and links that the nodes have stated. No row shows these once a node is deleted.
	Sent int `json:"sent"`
	forget.Report
}

// errLeft ends `forget` with exit code 1.
var errLeft = errors.New("not forgotten yet")

// Forget is 'giantstream forget'.
func Forget(a *command.App) *cobra.Command {
	var (
		flags  = command.PipelineFlags{WithSinks: true}
		o      forgetOptions
		from   string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "forget [ID...]",
		Short: "Delete nodes with all links, and find every place where something of them is left",
		Long: `Delete nodes with all links from and to them, as any producer would: the records go
to the input topics, and sinks follow. Then open every object of the store, in a
bucket with versioning also the older ones, every record of the pipeline's topics,
and the files of state_dir and of the embedded broker on this machine, ask the
sinks that are configured, and list the places where an id or a text is left. The exit code is 0 if there is none, and 1
otherwise.

A deletion alone leaves older rows, checkpoints and generations as they are. Say
in this order, and look again with --check after each step:

  giantstream forget -c before.yaml --from ids.txt
  giantstream run -c before.yaml --until-idle
  giantstream rebuild -c before.yaml --set refresh.space=turn
  giantstream run -c before.yaml --until-idle
  giantstream reshard -c afterwards.yaml --from STORE --forget ids.txt
  giantstream forget -c afterwards.yaml --from ids.txt --check --texts-of STORE
  giantstream reshard -c afterwards.yaml --from STORE --remove-old

afterwards.yaml names another store, state_dir and mirror topic. With --deleted in
place of --from ids.txt, and --forget-deleted in place of --forget ids.txt, all
nodes are forgotten that producers have deleted: say that on a schedule. The page
OPERATIONS.md, "Forget an item", says what topics keep and until when, and what is
out of reach: other machines, exports and backups.`,
		Example: `  giantstream forget -c pipeline.yaml customer-17
  giantstream forget -c pipeline.yaml --deleted
  giantstream forget -c pipeline.yaml --from ids.txt --check --json | jq .findings`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case !o.deleted:
				o.ids, err = command.ReadIDs(args, from)
			case len(args) > 0 || from != "":
				err = command.UsageError(errors.New("give ids or --deleted, not both"))
			}
			if err != nil {
				return err
			}
			p, err := a.Open(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			if err := p.KnowsMapping(); err != nil {
				return err
			}
			f, err := forgetNodes(cmd.Context(), p, o)
			p.Progress.Done()
			if err != nil {
				return err
			}
			if asJSON {
				err = command.WriteJSON(a.Out, f)
			} else {
				err = f.print(a.Out)
			}
			return errors.Join(err, f.err())
		},
	}
	flags.Register(cmd)
	cmd.Flags().StringVar(&from, "from", "", "a `FILE` of ids, one a line; - is the standard input")
	cmd.Flags().BoolVar(&o.deleted, "deleted", false, "take the nodes that are deleted, also those of --texts-of")
	cmd.Flags().BoolVar(&o.check, "check", false, "delete nothing: only look")
	cmd.Flags().StringVar(&o.textsOf, "texts-of", "", "also look for the texts that another `STORE` has of the ids")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// forgetOptions are what people ask of `forget`.
type forgetOptions struct {
	ids            map[string]bool
	deleted, check bool
	textsOf        string
}

func forgetNodes(ctx context.Context, p *command.Pipeline, o forgetOptions) (_ *forgotten, err error) {
	var stores []storeOfNodes
	if o.textsOf != "" {
		old, err := openFrom(ctx, p.Config, o.textsOf)
		if err != nil {
			return nil, err
		}
		identity, err := commitlog.LoadIdentity(ctx, old)
		if err != nil {
			return nil, err
		}
		stores = append(stores, storeOfNodes{old, identity.Shards})
	}
	stores = append(stores, storeOfNodes{p.Store, p.Identity.Shards}) // the last word on what lives
	if o.deleted {
		o.ids = map[string]bool{}
		for _, s := range stores {
			if err := forget.AddDeleted(ctx, o.ids, s.store, s.shards, p.Progress); err != nil {
				return nil, err
			}
		}
	}
	f := &forgotten{Store: p.Store.URL(), IDs: len(o.ids), Report: forget.Report{Findings: []forget.Finding{}}}
	if f.IDs == 0 {
		return f, nil
	}
	var known forget.Known // in the pipeline's own store
	var texts []string
	for _, s := range stores {
		if known, err = forget.ReadKnown(ctx, s.store, s.shards, o.ids, p.Progress); err != nil {
			return nil, err
		}
		texts = append(texts, known.Texts...)
	}
	f.Live, f.Texts = known.Live, len(texts)
	for _, to := range known.Links {
		f.Links += len(to)
	}
	c, detach, err := wiring.Attach(ctx, p.Config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, detach()) }()
	if !o.check {
		if f.Sent, err = sendDeletions(ctx, p, c, o.ids, known); err != nil {
			return nil, err
		}
	}
	f.Report, err = scanPlaces(ctx, p, c, o.ids, texts)
	return f, err
}

// storeOfNodes is a store to which nodes are known.
type storeOfNodes struct {
	store  sink.Store
	shards int
}

func sendDeletions(ctx context.Context, p *command.Pipeline, c *client.Client, ids map[string]bool,
	known forget.Known) (sent int, err error) {
	messages, err := wiring.Deletions(p.Config, ids, known, time.Now())
	if err != nil {
		return 0, err
	}
	producer := c.NewProducer()
	defer producer.Close() //nolint:errcheck // Flush reports what matters
	if err := producer.Send(ctx, messages...); err != nil {
		return 0, err
	}
	return len(messages), producer.Flush(ctx)
}

// scanPlaces opens every object, every record and every file.
func scanPlaces(ctx context.Context, p *command.Pipeline, c *client.Client, ids map[string]bool, texts []string) (
	forget.Report, error) {
	vocabulary, err := wiring.OpenVocabularies(ctx, p.Store, p.Identity.Shards, texts, ids)
	if err != nil {
		return forget.Report{}, err
	}
	s := forget.NewScanner(forget.Targets{IDs: slices.Sorted(maps.Keys(ids)), Texts: texts, Vocabulary: vocabulary})
	folders := wiring.ScannedFolders(p.Config)
	except, err := wiring.KeysOfFolders(p.Config.Store, folders)
	if err != nil {
		return forget.Report{}, err
	}
	if err := s.Store(ctx, p.Store, except, p.Progress); err != nil {
		return forget.Report{}, err
	}
	if versioned, ok := p.Store.(sink.Versioned); ok {
		if err := s.Versions(ctx, versioned, p.Progress); err != nil {
			return forget.Report{}, err
		}
	}
	for _, topic := range wiring.ScannedTopics(p.Config) {
		if err := s.Topic(ctx, wiring.TopicRecords{Client: c}, topic[0], topic[1], p.Progress); err != nil {
			return forget.Report{}, err
		}
	}
	if err := scanSinks(ctx, p, s); err != nil {
		return forget.Report{}, err
	}
	for _, folder := range folders {
		if err := s.Folder(ctx, folder[0], folder[1], p.Progress); err != nil {
			return forget.Report{}, err
		}
	}
	return s.Report(), nil
}

// scanSinks looks into the sinks that are configured.
func scanSinks(ctx context.Context, p *command.Pipeline, s *forget.Scanner) error {
	for _, kind := range sinks.Kinds {
		if kind.Configured(p.Config) != nil {
			continue
		}
		if err := kind.Scan(ctx, s, p.Config, p.Log, p.Progress); err != nil {
			return err
		}
	}
	if p.Config.Sinks.Iceberg.URI != "" {
		s.Unread("table of iceberg", errors.New("'giantstream-iceberg left' looks into it; "+
			"--set sinks.iceberg.uri= leaves it out here"))
	}
	return nil
}

// err is the outcome as the command's error.
func (f *forgotten) err() error {
	switch n, unread := len(f.Findings), len(f.Unread); {
	case n > 0:
		return fmt.Errorf("%w: %d places above; docs/OPERATIONS.md, \"Forget an item\", says what to do", errLeft, n)
	case unread > 0:
		return fmt.Errorf("%w: %d places above cannot be opened", errLeft, unread)
	}
	return nil
}

// maxPlaces is how many places of a kind are listed.
const maxPlaces = 10

func (f *forgotten) print(out io.Writer) error {
	if f.IDs == 0 {
		_, err := fmt.Fprintf(out, "no node of %s is deleted: there is nothing to forget\n", console.Plain(f.Store))
		return err
	}
	if f.Sent > 0 {
		fmt.Fprintf(out, "%s records were sent that delete %s nodes and %s links; workers have yet to commit them\n",
			console.Count(f.Sent), console.Count(f.Live), console.Count(f.Links))
	} else if f.Live+f.Links > 0 {
		fmt.Fprintf(out, "%s of %s nodes are not deleted, and %s links lead to them\n", console.Count(f.Live),
			console.Count(f.IDs), console.Count(f.Links))
	}
	fmt.Fprintf(out, "looked for %s ids and %s texts in %s objects with %s and %s records of topics\n",
		console.Count(f.IDs), console.Count(f.Texts), console.Count(f.Objects), console.Bytes(f.Bytes),
		console.Count(f.Records))
	if f.Texts == 0 {
		fmt.Fprintln(out, "the store has no text of them; --texts-of names one that had")
	}
	for _, place := range f.Unread {
		fmt.Fprintf(out, "not looked into: %s\n", console.Plain(place))
	}
	if len(f.Findings) == 0 {
		fmt.Fprintln(out, "nothing is left in what was opened")
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nKIND\tPLACE\tWHAT")
	listed := map[string]int{}
	for _, at := range f.Findings {
		if listed[at.Kind]++; listed[at.Kind] <= maxPlaces {
			place := at.Place
			if at.Last > 0 {
				place = fmt.Sprintf("%s, offsets %d to %d", place, at.First, at.Last)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", at.Kind, console.Plain(place), strings.Join(at.Where, "; "))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(listed)) {
		if more := listed[kind] - maxPlaces; more > 0 {
			fmt.Fprintf(w, "%s\t… and %s more (--json lists all)\t\n", kind, console.Count(more))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	said := map[string]bool{}
	for _, at := range f.Findings {
		if at.Do != "" && !said[at.Do] {
			said[at.Do] = true
			fmt.Fprintf(out, "\n%s: %s\n", at.Kind, at.Do)
		}
	}
	return nil
}
