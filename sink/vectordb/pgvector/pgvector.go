package pgvector

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"giantstream/internal/retry"
	"giantstream/sink/vectordb"
)

// Options of an index.
type Options struct {
	// URL is a connection string, as postgres://user:password@host:5432/database.
	URL string
	// Name of the view, and prefix of the tables: a-z, 0-9 and _.
	Name string
	// M and EFConstruction are parameters of the HNSW index; 0 for pgvector's defaults.
	M, EFConstruction int
	// Attributes are columns of the tables and of the view.
	Attributes []vectordb.Attribute
	Log        *slog.Logger
}

// maxIndexed is how many dimensions pgvector's HNSW takes of the type vector.
const maxIndexed = 2000

// maxID is how long a node id may be, in bytes: a row of a B-tree has to fit a third of a page.
const maxID = 2600

// lockTimeout bounds how long a change of the view waits for readers, while others wait behind it.
const lockTimeout = 5 * time.Second

// Index is a vectordb.Index in PostgreSQL.
type Index struct {
	opts    Options
	pool    *pgxpool.Pool
	session string
}

// New returns an index, which connects when it is opened.
func New(o Options) (*Index, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		// The library's error has the string in it, and finds the password there as well as it can.
		return nil, errors.New("the connection string is wrong: write postgres://user:password@host:5432/database, " +
			"and what is no letter or digit in the password as %40 for @")
	}
	if _, ok := config.ConnConfig.RuntimeParams["application_name"]; !ok {
		config.ConnConfig.RuntimeParams["application_name"] = "giantstream sink " + o.Name
	}
	config.ConnConfig.ConnectTimeout = cmp.Or(config.ConnConfig.ConnectTimeout, 10*time.Second)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return &Index{opts: o, pool: pool, session: rand.Text()}, nil
}

// Close implements vectordb.Index.
func (x *Index) Close() error {
	x.pool.Close()
	return nil
}

// Check implements vectordb.Index.
func (x *Index) Check(nodeID string) error {
	switch {
	case strings.ContainsRune(nodeID, 0):
		return errors.New("its id has a zero byte, which PostgreSQL's text cannot hold")
	case !utf8.ValidString(nodeID):
		return errors.New("its id is no UTF-8")
	case len(nodeID) > maxID:
		return fmt.Errorf("its id has %d bytes; an index of PostgreSQL takes %d", len(nodeID), maxID)
	}
	return nil
}

// Open implements vectordb.Index.
func (x *Index) Open(ctx context.Context) (vectordb.Saved, error) {
	saved := vectordb.Saved{Progress: map[int]vectordb.Progress{}}
	if err := x.extension(ctx); err != nil {
		return saved, err
	}
	err := x.transaction(ctx, func(tx pgx.Tx) error {
		// Two processes that create the tables at once would collide.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))", x.opts.Name+"_sink"); err != nil {
			return err
		}
		if err := x.free(ctx, tx); err != nil {
			return err
		}
		for _, statement := range []string{
			`CREATE TABLE IF NOT EXISTS %s_sink (
				id boolean PRIMARY KEY DEFAULT true CHECK (id), session text NOT NULL, catalog jsonb NOT NULL)`,
			`CREATE TABLE IF NOT EXISTS %s_sink_progress (
				partition int PRIMARY KEY, progress jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now())`,
		} {
			if _, err := tx.Exec(ctx, fmt.Sprintf(statement, x.opts.Name)); err != nil {
				return err
			}
		}
		err := tx.QueryRow(ctx, fmt.Sprintf(`INSERT INTO %s_sink AS s (session, catalog) VALUES ($1, '{}')
			ON CONFLICT (id) DO UPDATE SET session = excluded.session RETURNING catalog`, x.opts.Name),
			x.session).Scan(&saved.Catalog)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, fmt.Sprintf("SELECT partition, progress FROM %s_sink_progress", x.opts.Name))
		if err != nil {
			return err
		}
		var partition int
		var progress vectordb.Progress
		_, err = pgx.ForEachRow(rows, []any{&partition, &progress}, func() error {
			saved.Progress[partition] = progress
			progress = vectordb.Progress{} // maps are not shared
			return nil
		})
		return err
	})
	return saved, err
}

// extension makes sure of pgvector.
func (x *Index) extension(ctx context.Context) error {
	var server, version string
	const query = `SELECT current_setting('server_version'),
		coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '')`
	if err := x.pool.QueryRow(ctx, query).Scan(&server, &version); err != nil {
		return classify(err)
	}
	if version == "" {
		if _, err := x.pool.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS vector"); err != nil {
			if classified := classify(err); !retry.Final(classified) {
				return classified
			}
			return fmt.Errorf("%w: the database has no extension \"vector\", and it cannot be created (%w). "+
				"Install pgvector on the server (PostgreSQL %s), and let a superuser run CREATE EXTENSION vector in "+
				"this database",
				vectordb.ErrRefused, err, server)
		}
		return x.extension(ctx)
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA == nil && errB == nil && a == 0 && b < 5 {
		return fmt.Errorf("%w: pgvector %s has no HNSW index; install 0.5.0 or newer and run "+
			"ALTER EXTENSION vector UPDATE", vectordb.ErrRefused, version)
	}
	return nil
}

// transaction runs do in a transaction.
func (x *Index) transaction(ctx context.Context, do func(pgx.Tx) error) error {
	return classify(pgx.BeginFunc(ctx, x.pool, do))
}

// owned runs do in a transaction of a process that has not been replaced, and keeps others from replacing it meanwhile.
func (x *Index) owned(ctx context.Context, do func(pgx.Tx) error) error {
	return x.transaction(ctx, func(tx pgx.Tx) error {
		var mine bool
		err := tx.QueryRow(ctx, fmt.Sprintf("SELECT session = $1 FROM %s_sink FOR SHARE", x.opts.Name),
			x.session).Scan(&mine)
		if err != nil {
			return err
		}
		if !mine {
			return vectordb.ErrTakenOver
		}
		return do(tx)
	})
}

// finalCodes are prefixes of SQLSTATE that no retry changes.
var finalCodes = []string{
	"0A", "22", "2B", "28", "3D", "3F", "42", // unsupported, data, dependents, authorization, names, syntax and rights
	"25006", // a server for reading only
}

// classify makes final what the server would refuse again.
func classify(err error) error {
	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}
	for _, prefix := range finalCodes {
		if strings.HasPrefix(p.Code, prefix) {
			return fmt.Errorf("%w: PostgreSQL says %w", vectordb.ErrRefused, err)
		}
	}
	return err
}
