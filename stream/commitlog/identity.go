package commitlog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"giantstream/internal/retry"
	"giantstream/internal/seal"
	"giantstream/sink"
	"giantstream/sink/audit"
)

// ErrIdentity: the store or the local state belongs to another pipeline.
const ErrIdentity = retry.FinalError("belongs to another pipeline")

// ErrSettings: the store was made with other settings of what the graph is.
const ErrSettings = retry.FinalError("was made with other settings")

// identityFormat is the version of the store's layout. Readers accept 1, which had no ID and no settings, 2, whose
// programs do not know that documents name objects by their SHA-256 and say where they are stored, and 3, whose
// programs know nodes and edges alone.
const (
	identityFormat         = 4
	settingsIdentityFormat = 2 // the first that has an ID and settings
)

const (
	// identityKey names the identity's object.
	identityKey = "pipeline.json"
	// idKey names the object with the id of a store that was made with format 1. Several workers may
	// upgrade the store at once, and one of them creates it.
	idKey = "pipeline-id"
	// idDigits is the length of an id: 64 bits in hexadecimal.
	idDigits = 16
)

// drawnID is the object at idKey. Older releases stored the id alone.
type drawnID struct {
	ID string `json:"id"`
}

// Identity is what a store belongs to. The first run writes it, and every later run compares it.
type Identity struct {
	Format     int    `json:"format"`
	Name       string `json:"name"`
	Shards     int    `json:"shards"`
	Undirected bool   `json:"undirected"`
	// ID is random, 16 hexadecimal digits. It tells pipelines of the same name apart. It is "" only
	// in a store of format 1 that no later version has opened yet.
	ID string `json:"id,omitempty"`
	// Settings are those by which records become the graph, by their names in the configuration.
	Settings map[string]string `json:"settings,omitempty"`
	// Hash is that of Settings, for people and tools: the SHA-256 of their JSON, keys ascending.
	Hash string `json:"settings_sha256,omitempty"`
	// Inputs are the names of all inputs that the pipeline ever had beside nodes and edges, in the order in which
	// it first named them. The first is mutation.Further, and no number is used twice.
	Inputs []string `json:"inputs,omitempty"`
	// Claimed: a worker was about to consume with these settings. Before that they bind nobody.
	Claimed bool `json:"claimed,omitempty"`
}

// EnsureIdentity writes the identity into an empty store, or compares it with the store's, and
// returns that of the store. Inputs that the store does not know yet get the next numbers. Settings that
// differ replace those of the store if these bind nobody, if they do nothing but add such inputs, or if they
// are accepted; else they are ErrSettings. A store of an older version gets an ID and the settings.
//
// Each worker writes only over what it has read, so changes come one after another. A worker is sure
// of its settings once it has claimed them (ClaimIdentity). On a store without compare-and-swap,
// what two workers write at once is not noticed.
func EnsureIdentity(ctx context.Context, store sink.Store, want Identity, acceptSettings bool) (Identity, error) {
	if want.Name == "" || want.Shards < 1 {
		return want, fmt.Errorf("identity needs a name and at least one shard, has %q and %d", want.Name, want.Shards)
	}
	want.Format, want.Hash = identityFormat, hashSettings(want.Settings)
	asked := want.Inputs
	want.Inputs = numberInputs(nil, asked)
	if err := CheckReshard(ctx, store); err != nil {
		return want, err
	}
	for {
		have, stored, err := loadIdentity(ctx, store)
		switch {
		case errors.Is(err, sink.ErrNotFound):
			want.ID = newID()
		case err != nil:
			return want, err
		default:
			if err := have.compare(want, store.URL()); err != nil {
				return want, err
			}
			want.Inputs = numberInputs(have.Inputs, asked)
			if have.Format == identityFormat && maps.Equal(have.Settings, want.Settings) && have.ID != "" &&
				len(want.Inputs) == len(have.Inputs) {
				return have, nil
			}
			bound, err := have.Binds(ctx, store)
			if err != nil {
				return want, err
			}
			if want.Claimed = have.Claimed; bound && !acceptSettings {
				if err := have.compareSettings(want, store.URL()); err != nil {
					return want, err
				}
			}
			if want.ID = have.ID; have.ID == "" {
				if want.ID, err = upgradeID(ctx, store); err != nil {
					return want, err
				}
			}
		}
		data, err := seal.JSON(want, seal.Place{Pipeline: want.ID, Key: identityKey})
		if err != nil {
			return want, fmt.Errorf("encode identity: %w", err)
		}
		err = sink.Swap(ctx, store, identityKey, stored, data)
		if errors.Is(err, sink.ErrChanged) {
			acceptSettings = false // what was accepted was a change of other settings
			continue
		}
		if err != nil {
			return want, fmt.Errorf("claim the store: %w", err)
		}
		store.SetPipeline(want.ID)
		return want, nil
	}
}

// numberInputs returns the inputs with those that they lack of the names asked for.
func numberInputs(inputs, asked []string) []string {
	for _, name := range asked {
		if !slices.Contains(inputs, name) {
			inputs = append(slices.Clip(inputs), name)
		}
	}
	return inputs
}

// Check returns ErrIdentity or ErrSettings if want, of a configuration, is not what the store belongs to. Settings that
// bind nobody are not compared.
func (have Identity) Check(ctx context.Context, store sink.Store, want Identity) error {
	if err := have.compare(want, store.URL()); err != nil {
		return err
	}
	if bound, err := have.Binds(ctx, store); err != nil || !bound {
		return err
	}
	return have.compareSettings(want, store.URL())
}

// Binds reports whether the settings can only be replaced on purpose. Older releases do not claim them.
func (have Identity) Binds(ctx context.Context, store sink.Store) (bool, error) {
	if have.Format < settingsIdentityFormat {
		return false, nil
	}
	if have.Claimed {
		return true, nil
	}
	for _, err := range store.List(ctx, "shards/", "") {
		return err == nil, err
	}
	return false, nil
}

// ClaimIdentity makes the settings of mine, as EnsureIdentity returned it, binding for all workers. It returns
// ErrSettings if another worker has replaced them since. A worker calls it before it reads any record.
func ClaimIdentity(ctx context.Context, store sink.Store, mine Identity) error {
	for {
		have, stored, err := loadIdentity(ctx, store)
		if err != nil {
			return err
		}
		if err := have.compare(mine, store.URL()); err != nil {
			return err
		}
		if err := have.compareSettings(mine, store.URL()); err != nil || have.Claimed {
			return err
		}
		have.Claimed = true
		data, err := seal.JSON(have, seal.Place{Pipeline: have.ID, Key: identityKey})
		if err != nil {
			return fmt.Errorf("encode identity: %w", err)
		}
		if err = sink.Swap(ctx, store, identityKey, stored, data); err == nil {
			return nil
		}
		if !errors.Is(err, sink.ErrChanged) {
			return fmt.Errorf("claim the settings of the store: %w", err)
		}
	}
}

// furtherSettings begins the names of the settings of further inputs, and furtherFields and furtherVectors name those
// that list what their topics have, as TOPIC/FIELD or TOPIC/KIND.
const (
	furtherSettings = "ingest.attributes."
	furtherFields   = furtherSettings + "fields"
	furtherVectors  = furtherSettings + "vectors"
	furtherEdges    = "ingest.edges.topics"
	// externalSettings begins those of a model whose vectors are in a topic of its own.
	externalSettings = "ingest.external."
)

// extendedBy reports whether settings differ in nothing but that they add inputs that the store has not known. These
// are read from their first records, so all of their records become what the settings say.
func (have Identity) extendedBy(want map[string]string) bool {
	for name, value := range want {
		was, known := have.Settings[name]
		switch {
		case was == value && known:
		case name == furtherFields || name == furtherVectors || name == furtherEdges:
			if !have.ofNewInputs(was, value) {
				return false
			}
		case !known && (strings.HasPrefix(name, furtherSettings) || strings.HasPrefix(name, externalSettings)):
		default:
			return false
		}
	}
	for name := range have.Settings {
		if _, stays := want[name]; !stays {
			return false
		}
	}
	return true
}

// ofNewInputs reports whether a list of TOPIC/FIELD is the former one, with fields after it whose topics the store has
// not known.
func (have Identity) ofNewInputs(was, value string) bool {
	added := value
	if was != "" {
		var longer bool
		if added, longer = strings.CutPrefix(value, was+", "); !longer {
			return false
		}
	}
	for field := range strings.SplitSeq(added, ", ") {
		if topic, _, _ := strings.Cut(field, "/"); slices.Contains(have.Inputs, topic) {
			return false
		}
	}
	return true
}

// compareSettings names the settings that differ.
func (have Identity) compareSettings(want Identity, url string) error {
	if have.extendedBy(want.Settings) {
		return nil
	}
	return fmt.Errorf("store %s %w: %s. Use those of before ('giantstream config from-store %s'), read all records "+
		"again ('giantstream remap'), or stop all workers and have these for new records alone ('giantstream run "+
		"--accept-settings')",
		url, ErrSettings, strings.Join(Difference(have.Settings, want.Settings), "; "), url)
}

// CreateIdentity writes the identity of a new pipeline into a store that has none. Its ID is the one that DrawID has
// drawn for the store, or a new one.
func CreateIdentity(ctx context.Context, store sink.Store, id Identity) error {
	id.Format, id.Hash, id.ID = identityFormat, hashSettings(id.Settings), store.Pipeline()
	if id.ID == "" {
		id.ID = DrawID(store)
	}
	data, err := seal.JSON(id, seal.Place{Pipeline: id.ID, Key: identityKey})
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	return store.Create(ctx, identityKey, data)
}

// DrawID draws the ID of a new pipeline for a store that is filled before its identity is written, so that the
// documents name it.
func DrawID(store sink.Store) string {
	id := newID()
	store.SetPipeline(id)
	return id
}

func newID() string {
	var id [idDigits / 2]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// upgradeID returns the ID of a store of format 1, which the first caller draws.
func upgradeID(ctx context.Context, store sink.Store) (string, error) {
	id := newID()
	data, err := seal.JSON(drawnID{id}, seal.Place{Pipeline: id, Key: idKey})
	if err == nil {
		err = store.Create(ctx, idKey, data)
	}
	if errors.Is(err, sink.ErrExists) {
		if id, _, err = readID(ctx, store); errors.Is(err, sink.ErrDamaged) {
			err = fmt.Errorf("%w; no object names the id yet: stop all workers of this pipeline, remove the object %s "+
				"from the store, and start them again", err, idKey)
		}
	}
	if err != nil {
		return "", fmt.Errorf("give the pipeline an id: %w", err)
	}
	return id, nil
}

// readID reads the object at idKey; sink.ErrDamaged if it is not what was written. sealed is false for that
// of an older release.
func readID(ctx context.Context, store sink.Store) (id string, sealed bool, err error) {
	data, err := sink.ReadAll(ctx, store, idKey)
	if err != nil {
		return "", false, err
	}
	drawn := drawnID{string(data)}
	if !isID(drawn.ID) {
		sealed, err = seal.Decode(data, seal.Place{Key: idKey}, &drawn)
		if err == nil && (!sealed || !isID(drawn.ID)) {
			err = errors.New("it holds no id with a checksum")
		}
	}
	if err != nil {
		return "", sealed, fmt.Errorf("%s: %w: %w", idKey, sink.ErrDamaged, err)
	}
	return drawn.ID, sealed, nil
}

func isID(s string) bool {
	return len(s) == idDigits && strings.Trim(s, "0123456789abcdef") == ""
}

// AuditID checks the id that a store of format 1 was given. pipeline.json has it as well.
func AuditID(ctx context.Context, a *audit.Audit) error {
	if !a.Has(idKey) {
		return nil
	}
	a.Claim(idKey)
	id, sealed, err := readID(ctx, a.Store)
	if err != nil && !audit.IsDamage(err) {
		return err
	}
	identity, identityErr := LoadIdentity(ctx, a.Store)
	known := identityErr == nil && isID(identity.ID) && identity.ID == a.Store.Pipeline()
	switch {
	case err == nil && known && id != identity.ID:
		err = fmt.Errorf("it says %s, and %s says %s", id, identityKey, identity.ID)
	case err == nil:
		a.Document(idKey, sealed)
		return nil
	}
	f := audit.Finding{Kind: audit.Derived, Object: idKey, What: err.Error()}
	if !known {
		f.Lost = "no worker can start"
		f.Do = fmt.Sprintf("Stop all workers. If %s is whole, remove this object: the next worker draws another id.",
			identityKey)
		return a.Found(ctx, f, "", nil)
	}
	f.Lost = fmt.Sprintf("nothing: %s names the id as well", identityKey)
	return a.Found(ctx, f, "write it again", func(ctx context.Context) error {
		data, err := seal.JSON(drawnID{identity.ID}, seal.Place{Pipeline: identity.ID, Key: idKey})
		if err != nil {
			return err
		}
		return sink.PutBytes(ctx, a.Store, idKey, data)
	})
}

// LoadIdentity reads the store's identity; sink.ErrNotFound if no pipeline has claimed the store. From then on the
// store refuses documents of other pipelines.
func LoadIdentity(ctx context.Context, store sink.Store) (Identity, error) {
	have, _, err := loadIdentity(ctx, store)
	return have, err
}

// loadIdentity also returns the object's bytes, for a caller that replaces them.
func loadIdentity(ctx context.Context, store sink.Store) (have Identity, stored []byte, err error) {
	if err := refuseGroupCommit(ctx, store); err != nil {
		return have, nil, err
	}
	stored, err = sink.ReadAll(ctx, store, identityKey)
	if err != nil {
		return have, nil, fmt.Errorf("read the store's identity: %w", err)
	}
	body, _, err := seal.Open(stored, seal.Place{Key: identityKey})
	if err != nil {
		return have, nil, fmt.Errorf("%s: %w: %w", identityKey, ErrDamaged, err)
	}
	if err := json.Unmarshal(body, &have); err != nil {
		return have, nil, fmt.Errorf("%s does not parse: %w", identityKey, err)
	}
	if have.Format < 1 || have.Format > identityFormat {
		return have, nil, fmt.Errorf("%s has format %d, this version reads 1 to %d: the store was made by another "+
			"release", identityKey, have.Format, identityFormat)
	}
	if store.Pipeline() == "" && have.ID != "" {
		store.SetPipeline(have.ID)
	}
	return have, stored, nil
}

// compare compares what can never change. The error names the settings that differ as well, so that a configuration
// written by hand is mended in one go.
func (have Identity) compare(want Identity, url string) error {
	var what []string
	if have.Name != want.Name {
		what = append(what, fmt.Sprintf("it is named %q, not %q", have.Name, want.Name))
	}
	if have.Shards != want.Shards {
		what = append(what, fmt.Sprintf("it has %d shards, not %d ('giantstream reshard' writes a store with another "+
			"number)", have.Shards, want.Shards))
	}
	if have.Undirected != want.Undirected {
		what = append(what, fmt.Sprintf("undirected is %t there and %t here", have.Undirected, want.Undirected))
	}
	if len(what) == 0 {
		return nil
	}
	if have.Settings != nil && want.Settings != nil && !have.extendedBy(want.Settings) {
		what = append(what, Difference(have.Settings, want.Settings)...)
	}
	return fmt.Errorf("store %s %w: %s. Use another store, or the settings it was created with, which "+
		"'giantstream config from-store %s' prints", url, ErrIdentity, strings.Join(what, "; "), url)
}

// Difference names each setting that differs, with its old and its new value.
func Difference(have, want map[string]string) (out []string) {
	names := maps.Clone(have)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, want)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if have[name] != want[name] {
			out = append(out, fmt.Sprintf("%s was %q and is %q", name, have[name], want[name]))
		}
	}
	return out
}

func hashSettings(settings map[string]string) string {
	data, err := json.Marshal(settings) // with ascending keys
	if err != nil || len(settings) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ErrGroupCommit: a past release wrote the store with stream.commit: group. The shards of a worker
// then shared manifests and row objects in the log of a session, sessions/<session>/, and the
// shards' own logs only lead there. This release has one commit for each shard and window
// (docs/decisions/0013-one-commit.md).
const ErrGroupCommit = retry.FinalError("written with stream.commit: group, which this release cannot read: stop the " +
	"pipeline, and let 'giantstream reshard' of the release that wrote it write a new store")

// What those releases wrote has these formats.
const (
	groupManifestFormat = 4 // of manifests in sessions, and of those in the shards' own logs from the first of them on
	groupBoundaryFormat = 2 // of boundaries behind such manifests
	sessionsPrefix      = "sessions/"
)

// refuseGroupCommit returns ErrGroupCommit if the store has the log of a session. The newest entry
// of such a log was never removed, so a store that was ever written that way has one.
func refuseGroupCommit(ctx context.Context, store sink.Store) error {
	for info, err := range store.List(ctx, sessionsPrefix, "") {
		if err != nil {
			return fmt.Errorf("look for group commits in the store: %w", err)
		}
		return fmt.Errorf("store %s has %s: it was %w", store.URL(), info.Key, ErrGroupCommit)
	}
	return nil
}
