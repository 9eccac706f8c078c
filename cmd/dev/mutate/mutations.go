package main

// mutation is a change of one line that breaks a rule of docs/PROTOCOL.md or docs/FROM-TOPIC-TO-INDEX.md, or a promise
// of docs/RELIABILITY.md.
type mutation struct {
	file     string
	what     string // the rule that is broken
	old, new string // old must be in the file exactly once
}

var mutations = []mutation{
	// Commit
	{"stream/commitlog/create.go", "a worker whose number is taken goes on as if it had committed",
		`			return fmt.Errorf("%w: %w", ErrTaken, err)`,
		`			return nil`},
	{"stream/shard/commit.go", "the mirror is not flushed before the manifest",
		`		if err := s.opts.Mirror.Flush(ctx); err != nil {`,
		`		if err := error(nil); err != nil {`},
	{"stream/shard/commit.go", "a commit does not wait for the records that the head covers",
		`	if s.below(s.resume) || s.window.dirty == 0 && !s.advanced()`,
		`	if s.window.dirty == 0 && !s.advanced()`},
	{"stream/shard/state.go", "a window is written before its commit without its marks",
		`	if err := s.write(b, window); err != nil {`,
		`	if err := s.write(b, window*0); err != nil {`},

	// Orders
	{"stream/shard/orders.go", "an older statement of a line takes the place of a newer one",
		`			if !l.newer(&known[0]) {`,
		`			if false {`},
	{"stream/shard/orders.go", "lines that are older than the whole order live",
		`	if o.replaced.set && at.Compare(o.replaced.at) < 0 {`,
		`	if false {`},
	{"stream/shard/orders.go", "the whole order leaves the lines that it does not list",
		`			if l.at.Compare(at) >= 0 {`,
		`			if true {`},
	{"stream/shard/orders.go", "an older record says when an order was placed",
		`	if c := at.Compare(o.at); o.stated && (c < 0 || c == 0 && !o.precedes(said)) {`,
		`	if false {`},
	{"stream/shard/register.go", "an order, or vectors, that a part of the window has written has no mark",
		`		if !one.due || one.dueWritten {`,
		`		if true {`},
	{"stream/shard/keys.go", "marks of orders are not taken along after another worker has committed",
		`var markSpaces = []byte{spaceDirty, spaceOrderDue, spaceVectorsDue}`,
		`var markSpaces = []byte{spaceDirty, spaceVectorsDue}`},
	{"stream/commitlog/compactor.go", "a merged block has no orders",
		`	if err := mergeTable(ctx, c.opts.Store, rows.Orders, key, doc, parts, doc.keepsOrder); err != nil {`,
		`	if err := error(nil); err != nil {`},

	// Expiry of orders
	{"stream/shard/expiry.go", "the time of day says which orders count",
		`rows.HorizonAt(at, c.keep))`,
		`rows.HorizonAt(time.Now().UnixMicro(), c.keep))`},
	{"stream/shard/expiry.go", "a wrong date lets all orders expire",
		`rows.LineTime(at, m.Version.EventTime) == at {`,
		`rows.LineTime(at, m.Version.EventTime) != 0 {`},
	{"sink/rows/horizon.go", "orders expire in the midst of a day",
		`newest-newest%day-keep.Microseconds()`,
		`newest-keep.Microseconds()`},
	{"sink/rows/horizon.go", "an order with a wrong date counts for ever",
		`{ return min(order, eventTime+ahead) }`,
		`{ return order }`},
	{"sink/rows/horizon.go", "an order counts that was placed at the horizon",
		`h > 0 && lineTime <= int64(h) }`,
		`h > 0 && lineTime < int64(h) }`},
	{"stream/shard/expiry.go", "the version of a line is forgotten as soon as the line has expired",
		`		if l.live || !replaced && !h.Forgets(l.at.EventTime) {`,
		`		if l.live || !replaced && !h.Forgets(l.at.EventTime-1<<62) {`},
	{"stream/shard/expiry.go", "that all of an order was stated is forgotten as soon as the order has expired",
		`	if o.replaced.set && h.Forgets(o.replaced.at.EventTime) {`,
		`	if o.replaced.set && h.Passed(o.time) {`},
	{"stream/shard/expiry.go", "who placed an order is remembered",
		`		o.customer = ""`,
		`		o.customer += ""`},
	{"stream/shard/expiry.go", "a state that is built again begins with what had expired",
		`		m.OrderHorizon = max(m.OrderHorizon, s.head.OrderHorizon)`,
		`		m.OrderHorizon = max(m.OrderHorizon, 0)`},
	{"stream/shard/commit.go", "expired orders stay in the state",
		`	if sweep {`,
		`	if sweep && m.Seq == 0 {`},
	{"stream/commitlog/compactor.go", "a merged block lets an order come back that was placed longer ago than it said",
		`	return !c.OrderHorizon.Forgets(r.EventTime)`,
		`	return !r.Deleted`},
	{"stream/commitlog/compactor.go", "a merged block keeps what has expired",
		`	r.Expire(c.OrderHorizon)`,
		`	r.Expire(0)`},
	{"stream/commitlog/beside.go", "each shard alone says which of all orders count",
		`			h = max(h, s.horizon)`,
		`			h = s.horizon`},
	{"stream/commitlog/folded.go", "a folded block forgets which orders count",
		`	if s.horizon > f.horizonAt(s.To) {`,
		`	if s.horizon > s.horizon+1 {`},

	// Vectors
	{"stream/shard/vectors.go", "newer vectors lose to older ones",
		`	if v.set && m.Version.Compare(v.at) <= 0 {`,
		`	if v.set && m.Version.Compare(v.at) >= 0 {`},
	{"stream/commitlog/compactor.go", "a merged block has no vectors",
		`	return mergeTable(ctx, c.opts.Store, rows.NodeVectors, key, doc, parts, all)`,
		`	return nil`},

	// Weights of links
	{"ingest/mirror/codec.go", "the mirror drops the weight of a link",
		`	m.Weight, rest = mutation.Weight(bits), b[weightBytes:]`,
		`	m.Weight, rest = mutation.Weight(bits)*0, b[weightBytes:]`},
	{"stream/shard/keys.go", "links of two kinds between two nodes are one",
		`	return other + "\x00" + kind.Name
}`,
		`	return other
}`},
	{"stream/shard/apply.go", "links that a node record lists have no kind",
		`		return c.replace(ctx, n, &h, farEnds(m), statedBy(m, true))
	}
	return nil`,
		`		return c.replace(ctx, n, &h, m.Others, statedBy(m, true))
	}
	return nil`},
	{"stream/shard/apply.go", "a directed link is mirrored",
		`	if c.mirror == nil || c.covered || kind.Directed {`,
		`	if c.mirror == nil || c.covered {`},
	{"stream/shard/apply.go", "the shard of the far end does not hear of a link's weight",
		`Op: op, ID: dst, Other: src, Weight: out.weight,`,
		`Op: op, ID: dst, Other: src,`},
	{"stream/shard/apply.go", "a weight that changes makes no row due",
		`	case !h.exists(), was == is && ok0 == ok1 && t0 == t1:`,
		`	case !h.exists(), was.label == is.label && ok0 == ok1 && t0 == t1:`},
	{"stream/shard/apply.go", "a link of some kind that is stated again moves no row",
		`	case c.plain && was.label == is.label && was.weight == is.weight && !is.weight.Stated():`,
		`	case was.label == is.label && was.weight == is.weight && !is.weight.Stated():`},
	{"stream/shard/attributes.go", "a row of attributes does not know when links were stated again",
		`	row.EventTime, err = r.eachLink(id, p, row.EventTime, func(string, *adjacency) {})`,
		`	_, err = r.eachLink(id, p, row.EventTime, func(string, *adjacency) {})`},
	{"stream/shard/facts.go", "the two ends of a link that both state it have different weights",
		`	if a.in.live && (!out.live || a.in.newer(out)) {`,
		`	if a.in.live && !out.live {`},

	// Removal of manifests
	{"stream/commitlog/create.go", "a number that is free because its manifest was removed is won again",
		`	return c.confirm(ctx, m)`,
		`	return nil`},
	{"stream/commitlog/boundary.go", "a late folder moves the boundary back",
		`	if err := swap.Replace(ctx, boundaryKey(to.Shard), b.stored, data); err != nil {`,
		`	if err := sink.PutBytes(ctx, store, boundaryKey(to.Shard), data); err != nil || swap == nil {`},
	{"stream/commitlog/fold.go", "the boundary passes the cut of a generation",
		`	last := min(seq-1, o.Keep)`,
		`	last := seq - 1`},
	{"stream/commitlog/fold.go", "the boundary passes a checkpoint that is kept",
		`		last = min(last, checkpoint.Seq-1)`,
		`		last = min(last, checkpoint.Seq+1000)`},
	{"stream/commitlog/log.go", "manifests are believed without a look at the boundary",
		`	if removed := CheckCreated(ctx, store, shard, seq); removed != nil {`,
		`	if removed := CheckCreated(ctx, store, shard, seq); removed != nil && err != nil {`},

	// Restart
	{"stream/commitlog/head.go", "a log that has lost its end is taken for a shorter one",
		`	if err := known.check(ctx, store, shard); err != nil {`,
		`	if known.seq = 0; false {`},
	{"stream/shard/open.go", "a state that is ahead does not read what it holds again",
		`			s.position[topic] = min(applied, next)`,
		`			s.position[topic] = max(applied, next)`},
	{"stream/shard/open.go", "a worker commits before it has read what its state holds",
		`		s.resume[topic] = max(s.resume[topic], applied)`,
		`		s.resume[topic] = max(s.resume[topic], 0)`},
	{"stream/shard/open.go", "marks of a state that is ahead are dropped",
		`	if !ahead {`,
		`	if true {`},
	{"stream/shard/open.go", "marks do not become due after another worker has committed",
		`	} else if s.state.meta.Committed < seq {`,
		`	} else if s.state.meta.Committed < 0 {`},
	{"stream/shard/apply.go", "the first record that the head does not cover counts as covered",
		`		c.covered = st.Offset < to.covered`,
		`		c.covered = st.Offset <= to.covered`},
	{"stream/shard/run.go", "while the state is behind, changes that show in no row make nothing due",
		`mirror: s.opts.Mirror, eager: s.below(s.covered),`,
		`mirror: s.opts.Mirror, eager: false,`},
	{"stream/shard/apply.go", "a link that changes without changing the row leaves no suspect mark",
		`		return c.setMark(owner, markSuspect)`,
		`		return nil`},
	{"stream/shard/apply.go", "a statement that is repeated is not mirrored again",
		`	if out := l.effective(); out.at == said.at {`,
		`	if out := l.effective(); out.at == said.at && c.eager {`},

	// Conservation
	{"stream/shard/apply.go", "records are not counted",
		`		c.count(st, &to.Outcomes)`,
		`		c.count(st, &mutation.Outcomes{})`},
	{"stream/shard/apply.go", "records that the state holds are counted again",
		`		if st.Offset < to.counted {`,
		`		if st.Offset < to.covered {`},
	{"stream/shard/apply.go", "a state that is ahead goes on with the counts of the commit log",
		`		if applied <= s.covered[topic] {`,
		`		if applied >= 0 {`},
	{"stream/shard/commit.go", "the manifest does not say what was counted",
		`Lost: s.losses(), Counted: maps.Clone(s.state.meta.Counted),`,
		`Lost: s.losses(),`},
	{"stream/shard/apply.go", "what loses to a newer statement counts as repeated",
		`	c.lost = c.lost || said.Compare(known) < 0`,
		`	c.lost = c.lost || said.Compare(known) < 0 && c.eager`},
	{"stream/shard/apply.go", "what is repeated counts as applied",
		`		c.won = c.won || is == said && !was.repeats(said)`,
		`		c.won = c.won || is == said`},

	// Checkpoints
	{"stream/shard/checkpointer.go", "a checkpoint names files that may have been collected (rule 1)",
		`		if f.number >= newest {`,
		`		if f.number >= 0 {`},
	{"stream/commitlog/checkpoint/superfluous.go", "the last checkpoint but one is removed (rule 2)",
		`number >= kept[0].Number) {`,
		`number >= newest) {`},

	// Compaction and removal
	{"stream/commitlog/orphans.go", "rows that a manifest names are removed",
		`		if named[info.Key] {
			continue
		}
		if err := removed.object(ctx, o.store, info); err != nil {`,
		`		if named[info.Key] && info.Size == 0 {
			continue
		}
		if err := removed.object(ctx, o.store, info); err != nil {`},
	{"stream/commitlog/compaction_remove.go", "merged objects are removed before their document exists",
		`		if !own.created.IsZero() && !own.objects[key] {`,
		`		if !own.objects[key] {`},
	{"stream/commitlog/compaction_remove.go", "parts that the cut of a generation needs are removed",
		`p.parent.end() > keep {`,
		`p.parent.from > keep {`},
	{"stream/commitlog/segment.go", "a reader takes a block that ends beyond its cut",
		`		if start+blockSize(level)-1 > to {`,
		`		if start > to {`},

	// Identity
	{"stream/shard/commit.go", "a commit does not ask whether the topics are the same",
		`	return s.checkInputs(ctx)`,
		`	return nil`},

	// Publication
	{"sink/replace.go", "a follower moves a cursor that another one has moved",
		`		if err = swap.Replace(ctx, key, old, data); !errors.Is(err, ErrUnsupported) {`,
		`		if err = PutBytes(ctx, store, key, data); swap != nil && !errors.Is(err, ErrUnsupported) {`},
	{"stream/publish/late.go", "a follower that was late does not move the cursor back",
		`		if now.Generation != f.cursor.Generation || now.Seq > f.cursor.Seq ||`,
		`		if now.Generation != f.cursor.Generation ||`},
	{"stream/publish/switch.go", "the cursor does not say that nodes may have vectors of another generation",
		`	mixed.Mixed = true`,
		`	mixed.Mixed = false`},
	{"stream/publish/late.go", "a follower that failed leaves the cursor alone",
		`		err = now.Move(ctx, to, f.session)`,
		`		if err = nil; to != now.Published { err = now.Move(ctx, to, f.session) }`},
	{"stream/publish/follower.go", "a follower goes on from a cursor that another one has moved",
		`	case f.cursor.Equal(now) && !f.since.IsZero():`,
		`	case !f.since.IsZero():`},
	{"stream/publish/follower.go", "a follower that has taken over lets the cursor stay behind",
		`	case f.opts.SaveEvery == nil || f.cursor.Writer != f.session:`,
		`	case f.opts.SaveEvery == nil:`},
	{"stream/commitlog/tail.go", "a follower believes manifests without a look at the boundary",
		`	return few, len(few) < tailManifests && b.Seq <= after, err`,
		`	return few, len(few) < tailManifests && b.Seq >= 0, err`},
	{"stream/publish/switch.go", "deletions before a generation's cut are not published",
		`	if model.Generation > 1 {`,
		`	if model.Generation > 2 {`},
	{"stream/publish/batch.go", "a row is published that a newer one on the topic supersedes",
		`		if b.ahead.supersedes(r) {`,
		`		if b.ahead.supersedes(r) && r.Seq == 0 {`},
	{"stream/publish/switch.go", "the cursor does not say up to where the topic has rows of the generation before",
		`	to.Ahead = max(f.at.Seq, f.at.Ahead)`,
		`	to.Ahead = 0`},

	// Lease
	{"sink/lease/lease.go", "a number that was removed wins again",
		`	if err := held.check(ctx); err != nil { // see doc.go, "Numbers"`,
		`	if err := held.check(ctx); err != nil && number < 0 {`},
	{"sink/lease/lease.go", "renewals do not count",
		`	if number != l.number || !bytes.Equal(data, l.seen) {`,
		`	if number != l.number || !bytes.Equal(data, data) {`},
	{"sink/lease/held.go", "a builder that has lost the lease goes on writing",
		`	if len(higher) > 0 {`,
		`	if len(higher) > 1 {`},

	// Vector databases
	{"sink/vectordb/milvus/write.go", "a process that has lost a write goes on through the same aliases",
		`		return x.renew(ctx)`,
		`		x.suspect.Store(false)`},
	{"sink/vectordb/milvus/fence.go", "a process leaves tables the aliases that earlier ones have written through",
		`	return x.dropWriters(ctx, collection, all, to)`,
		`	return x.dropWriters(ctx, x.sinkCollection(), all, to)`},

	// Contents
	{"internal/seal/seal.go", "a document may lie in the place of another one of its store",
		`	return same(p.Key, said.Key) && same(p.Pipeline, said.Pipeline)`,
		`	return same(p.Pipeline, said.Pipeline)`},
	{"sink/checksum.go", "an object may lie in the place of another one of its size",
		`	if computed != c {`,
		`	if computed != c && c.SHA256 == (SHA256{}) {`},

	// Ownership
	{"ingest/owner/claim.go", "of two claims with a number the later one holds",
		`		if held[c.Number] == nil {`,
		`		if held[c.Number] == nil || !c.Continues {`},
	{"ingest/owner/claim.go", "claims to an earlier topic of the name count",
		`		if claim.TopicID == topicID {`,
		`		if claim.TopicID != "" || topicID == "" {`},
	{"cmd/internal/service/membership/membership.go", "members of a group publish to different topics",
		`		return name + "-" + hex.EncodeToString(sum[:4])`,
		`		return name + "-" + hex.EncodeToString(sum[:0])`},

	// Types
	{"ingest/backfill/parquettype.go", "a timestamp of milliseconds is read as seconds",
		`		return jsonvalue.AppendTime(b, time.UnixMilli(v.Int64()))`,
		`		return jsonvalue.AppendTime(b, time.Unix(v.Int64(), 0))`},
	{"ingest/backfill/parquettype.go", "an unsigned integer above 2^63 is negative",
		`		return strconv.AppendUint(b, v.Uint64(), 10)`,
		`		return strconv.AppendInt(b, v.Int64(), 10)`},
	{"ingest/jsonvalue/jsonvalue.go", "whole numbers are written with an exponent",
		`	case size < 1e-6 || size >= exact:`,
		`	case size < 1e-6 || size >= min(exact, 1e6):`},

	// Secrets
	{"config/value.go", "a secret prints",
		`	out := s.String()`,
		`	out := string(s)`},
	{"config/excerpt.go", "a fault quotes values of several words",
		`	if plainText.MatchString(text) {`,
		`	if plainText.MatchString(text) || text != "" {`},

	// Readiness
	{"cmd/internal/service/ingesting/health.go", "a process without a place in its group is ready",
		`	case waited > usually:`,
		`	case waited > usually && usually < 0:`},
	{"cmd/internal/service/ingesting/health.go", "a process whose shard commits nothing is ready",
		`		if w.Ready && w.waited > limit {`,
		`		if w.Ready && w.waited > limit && limit < 0 {`},

	// Forgotten nodes
	{"stream/reshard/logs.go", "rows of forgotten nodes are written again",
		`(row.Seq <= before || r.Forget[row.NodeID]) {`,
		`(row.Seq <= before) {`},
	{"stream/shard/rekey.go", "a state keeps links of forgotten nodes",
		`		if r.opts.Forget[string(id)] {`,
		`		if r.opts.Forget[string(id)] && key[0] != spaceAdjacency {`},
	{"stream/reshard/forget.go", "a node is forgotten that the generation knows",
		`	for i, cut := range cuts {`,
		`	for i, cut := range cuts[len(cuts)-1:] {`},
}

// named has, by file, the tests that must notice its mutations where these are not in the protocol's own packages: what
// 'go test' is given.
var named = map[string][]string{
	"internal/seal/seal.go":                         verifyTests,
	"sink/checksum.go":                              verifyTests,
	"ingest/owner/claim.go":                         {"./ingest/owner"},
	"ingest/mirror/codec.go":                        {"./ingest/mirror"},
	"cmd/internal/service/membership/membership.go": {"./cmd/internal/service", "-run", "^TestWorkersThatPublish"},
	"ingest/backfill/parquettype.go":                {"./ingest", "-run", "^FuzzTypes$"},
	"ingest/jsonvalue/jsonvalue.go":                 {"./ingest", "-run", "^FuzzTypes$"},
	"config/value.go":                               {"./config", "-run", "^TestSecrets"},
	"config/excerpt.go":                             {"./config", "-run", "^TestSecrets"},
	"cmd/internal/service/ingesting/health.go": {"./cmd/internal/service/ingesting", "-run",
		"^TestReadyMeansProgress$"},
	"stream/reshard/logs.go":   forgetTests,
	"stream/shard/rekey.go":    forgetTests,
	"stream/reshard/forget.go": forgetTests,
}

var (
	verifyTests = []string{"./cmd/internal/service", "-run", "^TestVerifyIdentifiesContents$"}
	forgetTests = []string{"./cmd/internal/service", "-run", "^TestForgottenMeansGone$/^linear$"}
)
