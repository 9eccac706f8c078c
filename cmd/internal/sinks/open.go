package sinks

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"giantstream/cmd/internal/wiring"
	"giantstream/config"
	"giantstream/sink/vectordb"
	"giantstream/sink/vectordb/milvus"
	"giantstream/sink/vectordb/opensearch"
	"giantstream/sink/vectordb/pgvector"
	"giantstream/sink/vectordb/qdrant"
)

// Kind is a kind of database.
type Kind struct {
	Name, Title string
	// Field of the configuration that has to be set.
	Field string
	// Connect returns the index that a configuration names, which connects when it is first used.
	Connect func(*config.Config, *slog.Logger) (vectordb.Index, error)
	// Rid says what rids the tables of nodes that are deleted.
	Rid string
	// Rows, if not nil, follows the commit log into a table of rows, until ctx ends.
	Rows func(context.Context, RowsOptions) error
}

// RowsOptions are those of Kind.Rows.
type RowsOptions struct {
	Config *config.Config
	// UntilCaughtUp ends it when all that was committed at the start is in the table, Again fills the table anew.
	UntilCaughtUp, Again bool
	Log                  *slog.Logger
}

// Kinds are the databases that giantstream itself has clients of.
var Kinds = []Kind{
	{Name: "pgvector", Title: "PostgreSQL with the extension pgvector", Field: "sinks.pgvector.url",
		Connect: openPGVector, Rid: rid("pgvector")},
	{Name: "qdrant", Title: "Qdrant, 1.16 or newer", Field: "sinks.qdrant.url",
		Connect: openQdrant, Rid: rid("qdrant")},
	{Name: "opensearch", Title: "OpenSearch with its k-NN plugin", Field: "sinks.opensearch.url",
		Connect: openOpenSearch, Rid: rid("opensearch")},
	{Name: "milvus", Title: "Milvus, 2.4 or newer", Field: "sinks.milvus.url",
		Connect: openMilvus, Rid: rid("milvus")},
}

// Find returns the kind of a name.
func Find(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("no sink is called %q; they are %s", name, strings.Join(names, ", "))
}

// Configured reports that the field which this kind needs is empty.
func (k Kind) Configured(cfg *config.Config) error {
	for _, f := range cfg.Fields() {
		if f.Path == k.Field && f.Value == "" {
			return fmt.Errorf("%s: must be given for this sink", k.Field)
		}
	}
	return nil
}

// Open returns the index that a configuration names, or says what is missing.
func (k Kind) Open(cfg *config.Config, log *slog.Logger) (vectordb.Index, error) {
	if err := k.Configured(cfg); err != nil {
		return nil, err
	}
	x, err := k.Connect(cfg, log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Field, err)
	}
	return x, nil
}

func openPGVector(cfg *config.Config, log *slog.Logger) (vectordb.Index, error) {
	s := cfg.Sinks
	return pgvector.New(pgvector.Options{URL: string(s.PGVector.URL), Name: s.Name, M: s.PGVector.M,
		EFConstruction: s.PGVector.EFConstruction, Attributes: wiring.SinkAttributes(cfg), Log: log})
}

func openQdrant(cfg *config.Config, _ *slog.Logger) (vectordb.Index, error) {
	q := cfg.Sinks.Qdrant
	conf, err := wiring.TLS("sinks.qdrant", q.CAFile)
	if err != nil {
		return nil, err
	}
	return qdrant.New(qdrant.Options{URL: q.URL, APIKey: string(q.APIKey), TLS: conf, Name: cfg.Sinks.Name,
		Attributes: wiring.SinkAttributes(cfg)}), nil
}

func openOpenSearch(cfg *config.Config, _ *slog.Logger) (vectordb.Index, error) {
	o := cfg.Sinks.OpenSearch
	conf, err := wiring.TLS("sinks.opensearch", o.CAFile)
	if err != nil {
		return nil, err
	}
	return opensearch.New(opensearch.Options{URL: o.URL, Username: o.Username, Password: string(o.Password), TLS: conf,
		Name: cfg.Sinks.Name, Attributes: wiring.SinkAttributes(cfg)}), nil
}

func openMilvus(cfg *config.Config, _ *slog.Logger) (vectordb.Index, error) {
	m := cfg.Sinks.Milvus
	conf, err := wiring.TLS("sinks.milvus", m.CAFile)
	if err != nil {
		return nil, err
	}
	return milvus.New(milvus.Options{URL: m.URL, Token: string(m.Token), Database: m.Database, TLS: conf,
		Name: cfg.Sinks.Name, Attributes: wiring.SinkAttributes(cfg)})
}
