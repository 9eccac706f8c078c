package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"giantstream/cmd/internal/cli/command"
	"giantstream/cmd/internal/console"
	"giantstream/cmd/internal/wiring"
	"giantstream/sink/audit"
	"giantstream/stream/verify"
)

// verification is what `verify` prints.
type verification struct {
	Store    string `json:"store"`
	Objects  int64  `json:"objects"`
	Bytes    int64  `json:"bytes"`
	Unsealed int64  `json:"without_checksum,omitempty"`
	// Unidentified is audit.Audit's.
	Unidentified int64           `json:"without_identity,omitempty"`
	Findings     []audit.Finding `json:"findings"`
	// Deep and Against are nil where they were not asked for.
	Deep    []verify.Graph      `json:"deep,omitempty"`
	Against *verify.Differences `json:"against,omitempty"`
}

// errDamage ends `verify` with exit code 1.
var errDamage = errors.New("the store is damaged")

// Verify is 'giantstream verify'.
func Verify(a *command.App) *cobra.Command {
	var (
		flags   command.PipelineFlags
		opts    verify.Options
		against []string
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check everything in the store against its checksums, and repair what is derived",
		Long: `Read every object in the store and compare it with the size and checksum that were
stored with it: manifests and their chain, rows, merged blocks, checkpoints of the
state, generations, the published cursor and leases. Objects that no document names
are listed as orphans, which are no damage.

--deep also computes each generation's graph again from the rows, and compares its
hash, and the number of live nodes, with what was stored.

--against reads the input topics from their first records, computes the graph with a
simple model, and compares every node and link with the committed rows. Stop the
pipeline first; the topics must hold all records.

--repair repairs what can be made again from what is whole: damaged merged blocks
whose parts are there, checkpoints, the published cursor, leases, generations. It
never touches rows or manifests. Stop the pipeline first.

The exit code is 1 if there is damage that was not repaired, and 0 if not. What is
found is looked at twice, so verify may run beside a pipeline.`,
		Example: `  giantstream verify --store ./store
  giantstream verify -c pipeline.yaml --deep --json | jq .findings
  giantstream verify --store ./store --repair
  giantstream verify -c pipeline.yaml --against catalog.nodes,catalog.edges`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.OpenDamaged(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			opts.Store, opts.Generations, opts.Progress = p.Store, wiring.Generations{Store: p.Store}, p.Progress
			opts.Log = p.Log
			v, err := checkStore(cmd.Context(), p, opts, against)
			p.Progress.Done()
			if err != nil {
				return err
			}
			if asJSON {
				err = command.WriteJSON(a.Out, v)
			} else {
				err = v.print(a.Out)
			}
			return errors.Join(err, v.err())
		},
	}
	flags.Register(cmd)
	cmd.Flags().BoolVar(&opts.Deep, "deep", false, "compute the graphs of all generations again from the rows")
	cmd.Flags().BoolVar(&opts.Repair, "repair", false, "repair what can be made again (stop the pipeline first)")
	cmd.Flags().StringSliceVar(&against, "against", nil,
		"compare the rows with the input topics, record by record: all of `NODES,EDGES`… as they are configured")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func checkStore(ctx context.Context, p *command.Pipeline, opts verify.Options, against []string) (
	*verification, error) {
	if err := namesTopics(p, against); err != nil {
		return nil, err // before a full store is read
	}
	found, graphs, err := verify.Store(ctx, opts)
	if err != nil {
		return nil, err
	}
	v := &verification{Store: opts.Store.URL(), Objects: found.Objects, Bytes: found.Bytes, Unsealed: found.Unsealed,
		Unidentified: found.Unidentified,
		Findings:     found.Findings, Deep: graphs}
	if v.Findings == nil {
		v.Findings = []audit.Finding{} // an empty list in JSON
	}
	if len(against) > 0 {
		v.Against, err = compareWithTopics(ctx, p, opts)
	}
	return v, err
}

// namesTopics returns an error unless people have named all input topics that others state, or none.
func namesTopics(p *command.Pipeline, named []string) error {
	if len(named) == 0 {
		return nil
	}
	if err := p.KnowsMapping(); err != nil {
		return err
	}
	inputs := wiring.TopicsOf(p.Config).Given()
	if slices.Sort(named); !slices.Equal(named, slices.Sorted(slices.Values(inputs))) {
		return fmt.Errorf("--against %s: the graph is stated by other topics; give all: --against %s",
			strings.Join(named, ","), strings.Join(inputs, ","))
	}
	return nil
}

// compareWithTopics compares the rows with the input topics.
func compareWithTopics(ctx context.Context, p *command.Pipeline, opts verify.Options) (
	_ *verify.Differences, err error) {
	in, detach, err := wiring.OpenSource(ctx, p.Config, p.Identity.Inputs, p.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, detach()) }()
	topics := in.Feed.Topics.Stating()
	d, err := verify.Against(ctx, opts.Store, p.Config.Shards, verify.Topics{Inputs: topics, Source: in,
		Undirected: p.Config.Ingest.Undirected}, opts.Progress)
	if err == nil {
		d.Compacted, err = compacted(ctx, in, topics)
	}
	return d, err
}

// damage counts what is damaged and was not repaired.
func (v *verification) damage() (n int) {
	for _, f := range v.Findings {
		if f.Kind != audit.Orphan && f.Repaired == "" {
			n++
		}
	}
	for _, g := range v.Deep {
		if g.Damage != "" {
			n++
		}
	}
	if v.Against != nil {
		n += v.Against.Total
	}
	return n
}

// err is the outcome as the command's error.
func (v *verification) err() error {
	if n := v.damage(); n > 0 {
		return fmt.Errorf("%w: %d findings above; docs/OPERATIONS.md, \"The store is damaged\", says what to do",
			errDamage, n)
	}
	return nil
}

// printDifferences prints how the rows differ from the topics.
func printDifferences(out io.Writer, d *verify.Differences) {
	fmt.Fprintf(out, "\nagainst %s: %s records (%s dead letters) state %s nodes and %s links; %s nodes differ\n",
		strings.Join(d.Topics, " and "), console.Count(d.Records), console.Count(d.Refused), console.Count(d.Nodes),
		console.Count(d.Links), console.Count(d.Total))
	for _, line := range d.List {
		fmt.Fprintf(out, "  %s\n", line)
	}
	if d.Total > len(d.List) {
		fmt.Fprintf(out, "  … and %s more\n", console.Count(d.Total-len(d.List)))
	}
	if d.Total > 0 {
		for _, topic := range d.Compacted {
			fmt.Fprintf(out, "  %s is compacted: differences may be due to records that are gone\n", topic)
		}
	}
	for _, gone := range d.Gone {
		fmt.Fprintf(out, "  %s: the topic has deleted these records, so differences may be due to them\n", gone)
	}
	if d.Open > 0 {
		fmt.Fprintf(out, "  %s records are not committed yet and were left out\n", console.Count(d.Open))
	}
}

// maxOrphans is how many orphans are listed. They are no damage.
const maxOrphans = 10

func (v *verification) print(out io.Writer) error {
	fmt.Fprintf(out, "%s: %s objects with %s verified\n", v.Store, console.Count(v.Objects), console.Bytes(v.Bytes))
	if v.Unsealed > 0 {
		fmt.Fprintf(out, "%s documents of older releases have no checksum; they were parsed and compared only\n",
			console.Count(v.Unsealed))
	}
	if v.Unidentified > 0 {
		fmt.Fprintf(out, "%s objects of generations that older releases built are whole, and cannot be told from "+
			"others of their kind; those of the next generation can\n", console.Count(v.Unidentified))
	}
	var damage, orphans []audit.Finding
	for _, f := range v.Findings {
		if f.Kind == audit.Orphan {
			orphans = append(orphans, f)
		} else {
			damage = append(damage, f)
		}
	}
	if err := printFindings(out, damage); err != nil {
		return err
	}
	printOrphans(out, orphans)
	for i, g := range v.Deep {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, g)
	}
	if v.Against != nil {
		printDifferences(out, v.Against)
	}
	if v.damage() == 0 {
		fmt.Fprintln(out, "\nno damage")
	}
	return nil
}

// printFindings prints what is damaged as a table, and then what to do about each.
func printFindings(out io.Writer, damage []audit.Finding) error {
	if len(damage) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nKIND\tOBJECT\tREPAIRED")
	for _, f := range damage {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.Kind, f.Object, yesNo(f.Repaired != ""))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range damage {
		fmt.Fprintf(out, "\n%s\n  what: %s\n  lost: %s\n", f.Object, f.What, f.Lost)
		if f.Repaired != "" {
			fmt.Fprintf(out, "  done: %s\n", f.Repaired)
		} else if f.Do != "" {
			fmt.Fprintf(out, "  do:   %s\n", f.Do)
		}
	}
	return nil
}

func printOrphans(out io.Writer, orphans []audit.Finding) {
	if len(orphans) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s orphans, which no document names and which do no harm:\n", console.Count(len(orphans)))
	for _, f := range orphans[:min(len(orphans), maxOrphans)] {
		fmt.Fprintf(out, "  %s\n", f.Object)
	}
	if len(orphans) > maxOrphans {
		fmt.Fprintln(out, "  … (--json lists all)")
	}
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// verifiedNote says in `status` when the store was last verified.
func verifiedNote(s *verify.Stamp) string {
	switch {
	case s == nil:
		return "verified: never ('giantstream verify' checks every object)"
	case s.Damage > 0:
		return fmt.Sprintf("verified: at %s, with %d damaged objects: run 'giantstream verify' again",
			s.At.UTC().Format(time.DateTime), s.Damage)
	}
	return fmt.Sprintf("verified: at %s, no damage", s.At.UTC().Format(time.DateTime))
}
