/*
 * Commit, fencing, mirror, restart and removal of orphans: PROTOCOL.md, the sections of these names.
 *
 * WORKERS workers of one shard read two topics. Record n of topic 0 states node n, record n of topic 1
 * states a link of node n, which shows in the node's row only once the node is stated. So a row is a
 * function of the offsets, see row(). Each worker has a state on disk, which is behind its memory by as
 * much as the checker likes, and may be lost or replaced by a checkpoint.
 *
 * A worker may be killed at any point. It may also stand still for any time, because every interleaving
 * is explored: a worker that continues after others have committed is a zombie. A request to create a
 * manifest may take effect without an answer, or be lost, or arrive after the death of its sender.
 *
 * run -DWORKERS=3 -DOPENINGS=3 -DLATE=0
 * run -DWORKERS=2 -DOPENINGS=3 -DLATE=1
 *
 * mutants -DWORKERS=2 -DOPENINGS=3 -DLATE=0
 * mutant BUG_NEXT_NUMBER      OffsetsNeverDecrease  a late zombie tries the next number
 * mutant BUG_AMBIGUOUS_LOST   NamedObjectsExist     no answer is taken for "not committed": the rows are removed
 * mutant BUG_AMBIGUOUS_WON    NoGap                 no answer is taken for "committed"
 * mutant BUG_PUT_MANIFEST     ManifestsNeverChange  a manifest is put, not created
 * mutant BUG_NO_FLUSH         MirrorIsDurable       the manifest does not wait for the mirror
 * mutant BUG_NO_REPUBLISH     MirrorIsDurable       a replayed link is not mirrored again
 * mutant BUG_DROP_MARKS       RowsAreTheGraph       marks are dropped because the head has moved
 * mutant BUG_NO_SUSPECTS      RowsAreTheGraph       suspect marks are never promoted
 * mutant BUG_NOT_EAGER        RowsAreTheGraph       links are marked as usual while the state is behind the head
 * mutant BUG_COMMIT_EARLY     RowsAreTheGraph       the worker commits before it is where its state was
 * mutant BUG_ORPHANS_AT_ONCE  NamedObjectsExist     orphans are removed above the head, too
 */

#define NODES 2
#define LINKS 1
#define MANIFESTS (NODES + LINKS)

/* A worker that nobody can succeed need not die: to stand still for ever is the same. */
#define MORTAL (openings < OPENINGS)

/* Names of invariants. They are always false: the checker's message then says what was broken. */
hidden byte RowsAreTheGraph, NamedObjectsExist, OffsetsNeverDecrease, MirrorIsDurable, NoGap, ManifestsNeverChange,
	OneWinner, Lineage;

/* The row of node n after a records of topic 0 and b of topic 1: 0 none, 1 without the link, 2 with it. */
#define row(n, a, b) ((a) > (n) -> 1 + ((b) > (n)) : 0)
#define bitOf(n) (1 << (n))

/* The store: manifest s covers the offsets nodes[s] and links[s]. */
byte head;
byte nodes[MANIFESTS + 1], links[MANIFESTS + 1];
byte newest[NODES];  /* the newest committed row of each node */
byte mirrored;       /* links whose mirror is durable: bit per link */

byte started;        /* workers; they are alike, so they start in order */
byte openings;       /* of all workers together, so far */

/* The request of a worker that has died, on its way to the store. There is one at a time. */
bit underway, lateObjects;
byte lateSeq, lateNodes, lateLinks, lateDue;

/* append creates manifest s. The rows of the nodes in due are those of the offsets. */
inline append(s, a, b, due, objects) {
	assert(NoGap || s == head + 1);
	assert(OffsetsNeverDecrease || (a >= nodes[s - 1] && b >= links[s - 1]));
	assert(NamedObjectsExist || objects);
	assert(MirrorIsDurable || ((mirrored & (bitOf(b) - 1)) == bitOf(b) - 1));
	head = s; nodes[s] = a; links[s] = b;
	if :: (due & 1) -> newest[0] = row(0, a, b) :: else fi;
	if :: (due & 2) -> newest[1] = row(1, a, b) :: else fi;
	assert(RowsAreTheGraph || (newest[0] == row(0, a, b) && newest[1] == row(1, a, b)))
}

mtype = { Closed, Running, Creating, Created };

proctype Worker() {
	/* On disk: applied offsets, the manifest seen last, marks. */
	byte dNodes, dLinks, dSeen, dDue, dSuspect;
	/* In memory: the same, and where the worker stands. */
	byte aNodes, aLinks;   /* in the state */
	byte pNodes, pLinks;   /* read */
	byte rNodes, rLinks;   /* before this nothing is committed */
	byte due, suspect;     /* marks: bit per node */
	byte at;               /* the head as this worker knows it */
	byte sent;             /* links whose mirror was sent and not flushed */
	bit objects;           /* the row objects of window at+1, by this session, are in the store */
	bit won;               /* manifest at+1 has this session's bytes */
	mtype pc = Closed;
	bit ever;              /* has been opened */
	bit covered, eager, fresh;
	byte n;

end:	do
	/* Open: read the head, reconcile it with the state. */
	:: atomic { pc == Closed && openings < OPENINGS && (ever || _pid == 1 + started) ->
		if :: !ever -> ever = 1; started++ :: else fi;
		openings++; at = head;
		assert(Lineage || dSeen <= head);
		if
		:: true /* the disk as it was left */
		:: dNodes + dLinks > 0 -> dNodes = 0; dLinks = 0; dSeen = 0; dDue = 0; dSuspect = 0 /* a lost disk */
		:: dNodes < nodes[head] || dLinks < links[head] -> /* a checkpoint, which stands at a manifest */
			n = head;
			do
			:: n > 1 && (dNodes < nodes[n - 1] || dLinks < links[n - 1]) -> n--
			:: break
			od;
			dNodes = nodes[n]; dLinks = links[n]; dSeen = n; dDue = 0; dSuspect = 0; n = 0
		fi;
		aNodes = dNodes; aLinks = dLinks; due = dDue; suspect = dSuspect;
		pNodes = (aNodes < nodes[at] -> aNodes : nodes[at]);
		pLinks = (aLinks < links[at] -> aLinks : links[at]);
#ifdef BUG_COMMIT_EARLY
		rNodes = nodes[at]; rLinks = links[at];
#else
		rNodes = (aNodes > nodes[at] -> aNodes : nodes[at]);
		rLinks = (aLinks > links[at] -> aLinks : links[at]);
#endif
		if
		:: aNodes <= nodes[at] && aLinks <= links[at] -> due = 0; suspect = 0
		:: (aNodes > nodes[at] || aLinks > links[at]) && dSeen < at ->
#ifdef BUG_DROP_MARKS
			due = 0; suspect = 0
#else
#ifndef BUG_NO_SUSPECTS
			due = due | suspect;
#endif
			suspect = 0
#endif
		:: else
		fi;
		/* What the disk holds matters again only if there is another opening. */
		if :: !MORTAL -> dNodes = 0; dLinks = 0; dSeen = 0; dDue = 0; dSuspect = 0 :: else fi;
		pc = Running }

	/* Apply the next record of topic 0: it states a node. */
	:: atomic { pc == Running && pNodes < NODES ->
		covered = pNodes < nodes[at]; fresh = pNodes >= aNodes;
		if :: fresh -> aNodes++ :: else fi;
		if :: fresh && !covered -> due = due | bitOf(pNodes) :: else fi;
		pNodes++; covered = 0; fresh = 0 }

	/* Apply the next record of topic 1: it states a link. */
	:: atomic { pc == Running && pLinks < LINKS ->
		covered = pLinks < links[at]; fresh = pLinks >= aLinks;
		eager = pNodes < nodes[at] || pLinks < links[at];
#ifdef BUG_NOT_EAGER
		eager = 0;
#endif
		if :: fresh -> aLinks++ :: else fi;
		if
		:: fresh && !covered && (eager || aNodes > pLinks) -> due = due | bitOf(pLinks)
		:: fresh && !covered && !(eager || aNodes > pLinks) -> suspect = suspect | bitOf(pLinks)
		:: else
		fi;
#ifdef BUG_NO_REPUBLISH
		covered = covered || !fresh;
#endif
		if :: !covered -> sent = sent | bitOf(pLinks) :: else fi;
		pLinks++; covered = 0; fresh = 0; eager = 0 }

	/* The state reaches the disk: a spill, or the engine's flush. Marks and offsets go with the facts. */
	:: atomic { pc == Running && MORTAL &&
		(dNodes != aNodes || dLinks != aLinks || dSeen != at || dDue != due || dSuspect != suspect) ->
		dNodes = aNodes; dLinks = aLinks; dSeen = at; dDue = due; dSuspect = suspect }

	/* Commit, steps 1 and 2: the rows of the due nodes, and the flush of the mirror. */
	:: atomic { pc == Running && pNodes >= rNodes && pLinks >= rLinks &&
		(due || pNodes > nodes[at] || pLinks > links[at]) ->
		objects = 1;
#ifndef BUG_NO_FLUSH
		mirrored = mirrored | sent;
#endif
		sent = 0; pc = Creating }

	/* Step 3: create the manifest. The number is free; the answer may be lost, then the worker tries again. */
	:: atomic { pc == Creating && head <= at ->
		append((at + 1), pNodes, pLinks, due, objects);
		won = 1;
		if :: pc = Created :: true fi }
	/* The number is taken, by these bytes or others. */
	:: atomic { pc == Creating && head > at ->
		if
		:: won -> pc = Created
		:: !won ->
#ifdef BUG_NEXT_NUMBER
			at++; objects = 1
#else
#ifdef BUG_PUT_MANIFEST
			assert(ManifestsNeverChange || (nodes[at + 1] == pNodes && links[at + 1] == pLinks));
			won = 1
#else
			goto closed /* fenced */
#endif
#endif
		fi }
	/* Or the worker gives up, and does not know whether it has committed. To close the shard and open it
	   again is the same as to be killed, which is below. The mutants do something else. */
#ifdef BUG_AMBIGUOUS_LOST
	:: atomic { pc == Creating -> assert(NamedObjectsExist || !won); goto closed }
#endif
#ifdef BUG_AMBIGUOUS_WON
	:: atomic { pc == Creating -> won = 0; objects = 0; at++; due = 0; suspect = 0; pc = Running }
#endif

	/* Step 4: the window is committed. */
	:: atomic { pc == Created ->
		assert(OneWinner || won);
		won = 0; objects = 0; at++; due = 0; suspect = 0; pc = Running }

	/* The collector removes this session's objects. It may: their window is not above the head, and the
	   manifest does not name them. */
#ifdef BUG_ORPHANS_AT_ONCE
	:: atomic { objects && !won -> objects = 0 }
#else
	:: atomic { objects && !won && head > at -> objects = 0 }
#endif

	/* The process is killed. Its last request may be under way. */
	:: atomic { pc != Closed && MORTAL ->
		if
		:: true
		:: LATE && pc == Creating && head <= at && !underway ->
			underway = 1; lateObjects = objects;
			lateSeq = at + 1; lateNodes = pNodes; lateLinks = pLinks; lateDue = due
		fi;
		goto closed }
	od;
closed:	atomic {
		aNodes = 0; aLinks = 0; pNodes = 0; pLinks = 0; rNodes = 0; rLinks = 0; due = 0; suspect = 0;
		at = 0; sent = 0; objects = 0; won = 0; pc = Closed;
		goto end }
}

/* The network delivers a late request: the number may be taken by now. */
proctype Network() {
end:	do
	:: atomic { underway ->
		if
		:: head < lateSeq -> append(lateSeq, lateNodes, lateLinks, lateDue, lateObjects)
		:: else
		fi;
		underway = 0; lateObjects = 0; lateSeq = 0; lateNodes = 0; lateLinks = 0; lateDue = 0 }
	od
}

init {
	atomic {
		byte i;
		for (i : 1 .. WORKERS) { run Worker() }
		run Network()
	}
}
