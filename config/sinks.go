package config

import (
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// What a sink does with a record of the embeddings topic that is no embedding, or that the database cannot hold.
const (
	MalformedStop = "stop"
	MalformedSkip = "skip"
)

// Sinks says where 'giantstream sink run' brings embeddings.
type Sinks struct {
	// Name is what readers ask for: a view or an alias.
	Name      string `yaml:"name" effect:"restart"`
	Batch     int    `yaml:"batch" effect:"restart"`     // records of one write
	Malformed string `yaml:"malformed" effect:"restart"` // MalformedStop or MalformedSkip
	// Dimensions, unless 0, leaves out vectors of other dimensions.
	Dimensions int `yaml:"dimensions" effect:"restart"`
	// Attributes are the names of those that the embeddings topic and the databases have beside the vectors.
	Attributes List       `yaml:"attributes" effect:"restart"`
	PGVector   PGVector   `yaml:"pgvector"`
	Qdrant     Qdrant     `yaml:"qdrant"`
	OpenSearch OpenSearch `yaml:"opensearch"`
	Milvus     Milvus     `yaml:"milvus"`
	Iceberg    Iceberg    `yaml:"iceberg"`
}

// PGVector is a database of PostgreSQL with the extension pgvector.
type PGVector struct {
	URL            Secret `yaml:"url" effect:"restart"`             // it holds a password
	M              int    `yaml:"m" effect:"restart"`               // of the HNSW index
	EFConstruction int    `yaml:"ef_construction" effect:"restart"` // of the HNSW index
}

// Qdrant is a server or a cluster of Qdrant.
type Qdrant struct {
	URL    string `yaml:"url" effect:"restart"`
	APIKey Secret `yaml:"api_key" effect:"restart"`
	CAFile string `yaml:"ca_file" effect:"restart"`
}

// OpenSearch is a cluster of OpenSearch.
type OpenSearch struct {
	URL      string `yaml:"url" effect:"restart"`
	Username string `yaml:"username" effect:"restart"`
	Password Secret `yaml:"password" effect:"restart"`
	CAFile   string `yaml:"ca_file" effect:"restart"`
}

// Milvus is a server or a cluster of Milvus.
type Milvus struct {
	URL      string `yaml:"url" effect:"restart"`
	Token    Secret `yaml:"token" effect:"restart"`    // user:password, or an API key
	Database string `yaml:"database" effect:"restart"` // "" is the server's default
	CAFile   string `yaml:"ca_file" effect:"restart"`
}

// Iceberg are tables of a REST catalog: of embeddings, called as Sinks.Name, and of rows. Their files are reached as
// those of the store (Config.S3).
type Iceberg struct {
	URI       string `yaml:"uri" effect:"restart"`
	Warehouse string `yaml:"warehouse" effect:"restart"` // where the catalog asks for one
	Token     Secret `yaml:"token" effect:"restart"`     // a bearer token
	// ClientID and Password are those of OAuth 2's client credentials.
	ClientID       string        `yaml:"client_id" effect:"restart"`
	Password       Secret        `yaml:"client_password" effect:"restart"`
	Scope          string        `yaml:"scope" effect:"restart"`
	CAFile         string        `yaml:"ca_file" effect:"restart"`
	Namespace      string        `yaml:"namespace" effect:"restart"` // with dots between its levels
	Rows           string        `yaml:"rows" effect:"restart"`      // the table of rows
	Location       string        `yaml:"location" effect:"restart"`  // of a new table, "" for the catalog's choice
	CommitInterval time.Duration `yaml:"commit_interval" effect:"restart"`
	CommitBytes    Size          `yaml:"commit_bytes" effect:"restart"`
}

// sinkName leaves room for what follows it in the names of tables, of which PostgreSQL takes 63 bytes.
var sinkName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)

var (
	namespace = regexp.MustCompile(`^[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*$`)
	location  = regexp.MustCompile(`^(s3|file)://[A-Za-z0-9._=/-]+$`)
)

// ofOneSink reports whether a field is of a sink into one database: only commands that reach the database need it.
func ofOneSink(path string) bool {
	return strings.HasPrefix(path, "sinks.") && strings.Count(path, ".") == 2
}

// UnsetOfSinks are faults for commands that reach the databases of sinks: fields that refer to variables of the
// environment which are not set. For others such fields are as if they were not there.
func (c *Config) UnsetOfSinks() []Fault { return c.unset }

func (v *validator) sinks(c *Config) {
	s := &c.Sinks
	v.check(sinkName.MatchString(s.Name), "sinks.name", "must be 1 to 31 of a-z, 0-9 and _, a letter first")
	v.check(s.Batch >= 1 && s.Batch <= 10000, "sinks.batch", "must be between 1 and 10000, got %d", s.Batch)
	v.oneOf("sinks.malformed", s.Malformed)
	v.atLeast("sinks.dimensions", s.Dimensions, 0)
	p := s.PGVector
	v.check(p.URL == "" || strings.HasPrefix(string(p.URL), "postgres://") ||
		strings.HasPrefix(string(p.URL), "postgresql://"), "sinks.pgvector.url",
		"must be postgres://user:password@host:5432/database")
	v.check(p.M >= 2 && p.M <= 100, "sinks.pgvector.m", "must be between 2 and 100, got %d", p.M)
	v.check(p.EFConstruction >= 2*p.M && p.EFConstruction <= 1000, "sinks.pgvector.ef_construction",
		"must be between 2·m and 1000, got %d", p.EFConstruction)
	for _, to := range [][2]string{{"sinks.qdrant.url", s.Qdrant.URL}, {"sinks.opensearch.url", s.OpenSearch.URL},
		{"sinks.milvus.url", s.Milvus.URL}, {"sinks.iceberg.uri", s.Iceberg.URI}} {
		u, err := url.Parse(to[1])
		web := err == nil && (u.Scheme == "http" || u.Scheme == "https")
		v.check(to[1] == "" || web && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "", to[0],
			"must be http://host:port or https://host:port, without credentials and without a query")
	}
	i := s.Iceberg
	v.check(namespace.MatchString(i.Namespace), "sinks.iceberg.namespace",
		"must be one or more names of A-Z, a-z, 0-9 and _, with dots between them")
	v.check(sinkName.MatchString(i.Rows) && i.Rows != s.Name, "sinks.iceberg.rows",
		"must be 1 to 31 of a-z, 0-9 and _, a letter first, and not sinks.name")
	v.check(i.Location == "" || location.MatchString(i.Location), "sinks.iceberg.location",
		"must be s3://bucket/path or file:///path, of A-Z, a-z, 0-9, '.', '_', '=', '-' and '/'")
	v.check(i.CommitInterval >= time.Second && i.CommitInterval <= time.Hour, "sinks.iceberg.commit_interval",
		"must be between 1s and 1h, got %v", i.CommitInterval)
	v.check(i.CommitBytes >= MiB && i.CommitBytes <= 1<<30, "sinks.iceberg.commit_bytes",
		"must be between 1MiB and 1GiB")
	v.check((i.ClientID == "") == (i.Password == "") || len(c.unset) > 0, "sinks.iceberg.client_id",
		"must be given together with client_password")
	v.check(i.Token == "" || i.Password == "", "sinks.iceberg.token", "must not be given together with client_password")
	v.check(s.OpenSearch.Password == "" || s.OpenSearch.Username != "" || len(c.unset) > 0, "sinks.opensearch.username",
		"must be given with password")
}

// inTheClear returns the addresses to which a secret would travel unprotected.
func (c *Config) inTheClear() (paths []string) {
	r, s := &c.Ingest.SchemaRegistry, &c.Sinks
	for _, to := range []struct {
		path, address string
		secret        Secret
	}{{"ingest.schema_registry.url", r.URL, r.Password},
		{"ingest.external.url", c.Ingest.External.URL, c.Ingest.External.APIKey},
		{"sinks.qdrant.url", s.Qdrant.URL, s.Qdrant.APIKey},
		{"sinks.opensearch.url", s.OpenSearch.URL, s.OpenSearch.Password},
		{"sinks.milvus.url", s.Milvus.URL, s.Milvus.Token},
		{"sinks.iceberg.uri", s.Iceberg.URI, s.Iceberg.Token + s.Iceberg.Password}} {
		u, err := url.Parse(to.address)
		if to.secret != "" && err == nil && u.Scheme == "http" && !loopback(net.JoinHostPort(u.Hostname(), u.Port())) {
			paths = append(paths, to.path)
		}
	}
	return paths
}
