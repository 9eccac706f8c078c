package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"
)

// External is a model behind a URL, whose vectors of the nodes' texts are one more view.
type External struct {
	URL        string        `yaml:"url" effect:"restart"`      // of its endpoint for embeddings, as OpenAI has it
	Model      string        `yaml:"model" effect:"graph"`      // "": none
	Dimensions int           `yaml:"dimensions" effect:"graph"` // of a vector
	APIKey     Secret        `yaml:"api_key" effect:"restart"`
	Batch      int           `yaml:"batch" effect:"restart"`   // texts of a request
	Rate       float64       `yaml:"rate" effect:"restart"`    // requests a second of a process; 0: no bound
	Timeout    time.Duration `yaml:"timeout" effect:"restart"` // of a request
}

// ExternalVectors returns the topic with the vectors of the external model, "" without one. Each model, and each number
// of its dimensions, has a topic of its own: their vectors cannot be compared.
func (c *Config) ExternalVectors() string {
	e := &c.Ingest.External
	if e.Model == "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", e.Model, e.Dimensions))
	return c.Pipeline + ".external-" + hex.EncodeToString(sum[:4])
}

func (v *validator) external(e *External) {
	// A store knows the model, and not where it is: only who streams needs that.
	v.check(e.URL == "" || e.Model != "", "ingest.external.model", "must be given with url")
	v.check(e.Model == "" || e.Dimensions >= 1 && e.Dimensions <= 4096, "ingest.external.dimensions",
		"must be between 1 and 4096, got %d", e.Dimensions)
	v.check(e.Batch >= 1 && e.Batch <= 2048, "ingest.external.batch", "must be between 1 and 2048, got %d", e.Batch)
	v.check(e.Rate >= 0 && e.Rate <= 1e6, "ingest.external.rate", "must be between 0 and 1000000, got %v", e.Rate)
	v.check(e.Timeout >= time.Second && e.Timeout <= time.Hour, "ingest.external.timeout",
		"must be between 1s and 1h, got %v", e.Timeout)
	if e.URL == "" {
		v.check(e.APIKey == "", "ingest.external.api_key", "has no effect without url")
		return
	}
	u, err := url.Parse(e.URL)
	v.check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		versionAlone(u.RawQuery) && u.Fragment == "", "ingest.external.url",
		"must be the address of an endpoint, such as http://localhost:8080/v1/embeddings, "+
			"without credentials and without a query but Azure's api-version")
}

// versionAlone reports whether a query has nothing but the version of an API: all else may be secret, and this field is
// shown.
func versionAlone(query string) bool {
	values, err := url.ParseQuery(query)
	delete(values, "api-version")
	return err == nil && len(values) == 0
}
