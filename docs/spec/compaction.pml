/*
 * Compaction, removal of merged parts, and readers: PROTOCOL.md, "Compaction".
 *
 * Two manifests make a block of level 1 (64 in the program), and two of those one of level 2: block 0 has
 * manifests 1 and 2, block 1 has 3 and 4, block 2 has all four. COMPACTORS compactors merge, a remover
 * removes what the rules allow, a builder chooses cuts, and
 * READERS readers read from any manifest up to the head or to the cut of a generation. All of them may
 * stand still for any time, or for ever, which is to be killed.
 *
 * Time is not modelled. The grace lets every reader finish that had begun when the block was merged. A
 * generation stays while it is read at its cut.
 *
 * run -DCOMPACTORS=2 -DREADERS=1
 *
 * mutants -DCOMPACTORS=2 -DREADERS=1
 * mutant BUG_NO_GRACE     ReaderFindsAll  merged parts are removed at once
 * mutant BUG_IGNORE_CUTS  ReaderFindsAll  parts are removed whatever cuts must stay readable
 * mutant BUG_FIRST_PARTS  ReaderFindsAll  parts are removed when the rows are merged, before the document
 * mutant BUG_SHARED_NAMES ReaderFindsAll  attempts to merge name their objects alike, and the loser cleans up
 * mutant BUG_PUT_DOCUMENT ReaderFindsAll  the document is put, not created
 * mutant BUG_HALF_BLOCK   SameRows        a block is merged before it is complete
 */

#define MANIFESTS 4
#define BLOCKS 3

hidden byte ReaderFindsAll, SameRows;

#define bitOf(n) (1 << (n))
#define first(b) ((b) == 2 -> 1 : 2 * (b) + 1)
#define last(b) ((b) == 2 -> 4 : 2 * (b) + 2)
#define span(b) ((b) == 2 -> 30 : (6 << (2 * (b)))) /* bit per manifest */

byte head;
byte rows;               /* row objects: bit per manifest */
byte merged[BLOCKS];     /* merged objects: bit per attempt */
byte doc[BLOCKS];        /* the attempt that the block's document names, plus one; 0 without a document */
byte content[BLOCKS];    /* manifests whose rows the document's objects hold */
byte cuts[2];            /* of two generations, 0 if there is none */
byte atCut[2];           /* readers at the cut of each */
byte early[BLOCKS];      /* readers that had begun when the block was merged: bit per reader */
byte reading;            /* readers at work: bit per reader */

/* The oldest cut that must stay readable, 0 before the first generation. It only grows, and documents
   never change: so a remover that has looked long ago removes less, not more. */
#ifdef BUG_IGNORE_CUTS
#define KEEP head
#else
#define KEEP (cuts[0] == 0 || (cuts[1] > 0 && cuts[1] < cuts[0]) -> cuts[1] : cuts[0])
#endif

/* superseded says whether the parts of block b may be removed. */
#ifdef BUG_NO_GRACE
#define superseded(b) (doc[b] > 0 && last(b) <= KEEP)
#else
#define superseded(b) (doc[b] > 0 && last(b) <= KEEP && early[b] == 0)
#endif

proctype Writer() {
end:	do
	:: atomic { head < MANIFESTS -> head++; rows = rows | bitOf(head) }
	od
}

/* The builder reads the head, and stores the generation's document later. */
proctype Builder() {
	byte cut;
end:	do
	:: atomic { head > 0 && cut == 0 && (cuts[0] == 0 || cuts[1] == 0) -> cut = head }
	:: atomic { cut > 0 ->
		if :: cuts[0] == 0 -> cuts[0] = cut :: else -> cuts[1] = cut fi;
		cut = 0 }
	/* The older generation is removed once there is a newer one. */
	:: atomic { cuts[0] > 0 && cuts[1] > cuts[0] && atCut[0] == 0 -> cuts[0] = 0 }
	:: atomic { cuts[1] > 0 && cuts[0] > cuts[1] && atCut[1] == 0 -> cuts[1] = 0 }
	od
}

mtype = { Idle, Written, Documented };

proctype Compactor(byte me) {
	byte b, has;
	mtype pc = Idle;
end:	do
	/* Read the parts of a block that has no document, and write the merged objects. A part that is gone
	   means that another compactor was faster. */
	:: atomic { pc == Idle ->
		b = 0;
		do :: b < 2 -> b++ :: break od;
		if
#ifdef BUG_HALF_BLOCK
		:: b < 2 && doc[b] == 0 && head >= first(b) && (rows & bitOf(first(b))) ->
#else
		:: b < 2 && doc[b] == 0 && head >= last(b) && (rows & span(b)) == span(b) ->
#endif
			has = rows & span(b); pc = Written
		:: b == 2 && doc[2] == 0 && doc[0] > 0 && doc[1] > 0 &&
			(merged[0] & bitOf(doc[0] - 1)) && (merged[1] & bitOf(doc[1] - 1)) ->
			has = content[0] | content[1]; pc = Written
		:: else -> b = 0
		fi;
		if
		:: pc == Written ->
#ifdef BUG_SHARED_NAMES
			merged[b] = merged[b] | 1;
#else
			merged[b] = merged[b] | bitOf(me);
#endif
#ifdef BUG_FIRST_PARTS
			if :: b < 2 -> rows = rows & ~span(b) :: else fi;
#endif
		:: else
		fi }
	/* Create the document. */
	:: atomic { pc == Written ->
		if
#ifdef BUG_PUT_DOCUMENT
		:: true ->
#else
		:: doc[b] > 0 ->
#ifdef BUG_SHARED_NAMES
			if :: doc[b] != me + 1 -> merged[b] = 0 :: else fi
#endif
			skip
		:: doc[b] == 0 ->
#endif
			doc[b] = me + 1; content[b] = has; early[b] = reading
		fi;
		b = 0; has = 0; pc = Idle }
	od
}

proctype Remover() {
end:	do
	/* Remove merged rows of windows. */
	:: atomic { superseded(0) && (rows & span(0)) -> rows = rows & ~span(0) }
	:: atomic { superseded(1) && (rows & span(1)) -> rows = rows & ~span(1) }
	/* Remove the objects of blocks that were merged into a larger one. */
	:: atomic { superseded(2) && (merged[0] | merged[1]) -> merged[0] = 0; merged[1] = 0 }
	/* Remove the objects of attempts that have lost. */
	:: atomic { doc[0] > 0 && (merged[0] & ~bitOf(doc[0] - 1)) -> merged[0] = merged[0] & bitOf(doc[0] - 1) }
	:: atomic { doc[1] > 0 && (merged[1] & ~bitOf(doc[1] - 1)) -> merged[1] = merged[1] & bitOf(doc[1] - 1) }
	:: atomic { doc[2] > 0 && (merged[2] & ~bitOf(doc[2] - 1)) -> merged[2] = merged[2] & bitOf(doc[2] - 1) }
	od
}

proctype Reader(byte me) {
	byte next, to, gen;  /* the next manifest, the last one; the generation at whose cut it reads, plus one */
	byte block, object;  /* what it has decided to read: a block plus one, and the attempt in its document */
end:	do
	:: atomic { to == 0 && head > 0 ->
		if
		:: to = head
		:: cuts[0] > 0 -> to = cuts[0]; gen = 1; atCut[0]++
		:: cuts[1] > 0 -> to = cuts[1]; gen = 2; atCut[1]++
		fi;
		next = 1;
		do :: next < to -> next++ :: break od;
		reading = reading | bitOf(me) }

	/* Decide: the largest block that has the next manifest and ends in the range, or else the manifest. */
	:: atomic { to > 0 && next <= to && object == 0 ->
		if
		:: to >= 4 && doc[2] > 0 -> block = 3; object = doc[2]
		:: !(to >= 4 && doc[2] > 0) && to >= last((next - 1) / 2) && doc[(next - 1) / 2] > 0 ->
			block = (next - 1) / 2 + 1; object = doc[block - 1]
		:: else -> block = 0; object = next
		fi }
	/* Read it. */
	:: atomic { to > 0 && object > 0 ->
		if
		:: block > 0 ->
#ifdef BUG_SHARED_NAMES
			assert(ReaderFindsAll || merged[block - 1] != 0);
#else
			assert(ReaderFindsAll || (merged[block - 1] & bitOf(object - 1)));
#endif
			assert(SameRows || content[block - 1] == span(block - 1));
			next = last(block - 1) + 1
		:: else ->
			assert(ReaderFindsAll || (rows & bitOf(object)));
			next = object + 1
		fi;
		block = 0; object = 0 }
	:: atomic { to > 0 && next > to ->
		next = 0; to = 0;
		reading = reading & ~bitOf(me);
		early[0] = early[0] & ~bitOf(me); early[1] = early[1] & ~bitOf(me); early[2] = early[2] & ~bitOf(me);
		if :: gen > 0 -> atCut[gen - 1]--; gen = 0 :: else fi }
	od
}

init {
	atomic {
		byte i;
		run Writer(); run Builder(); run Remover();
		for (i : 1 .. COMPACTORS) { run Compactor(i - 1) }
		for (i : 1 .. READERS) { run Reader(i - 1) }
	}
}
