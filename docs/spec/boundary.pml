/*
 * Removal of manifests behind a boundary: PROTOCOL.md, "Removal of manifests".
 *
 * WORKERS workers of one shard create manifests 1, 2, 3, …; each opening has content of its own. FOLDERS
 * folders write down in documents what manifests say (a document per manifest here, per block of 64 in the
 * program), move the boundary, and remove the manifests up to it. A reader reads manifests by their numbers,
 * like a collector of orphans, which removes what the manifest does not name.
 *
 * Each may stand still for any time between two calls, or for ever, which is to be killed. So may a request
 * to create a manifest, which takes effect later: that is a worker that stands still before it. The answer
 * may be lost.
 *
 * run -DWORKERS=2 -DOPENINGS=2 -DMANIFESTS=4 -DFOLDERS=1 -DREADERS=1
 * run -DWORKERS=2 -DOPENINGS=2 -DMANIFESTS=3 -DFOLDERS=2 -DREADERS=0
 *
 * mutants -DWORKERS=2 -DOPENINGS=2 -DMANIFESTS=3 -DFOLDERS=2 -DREADERS=1
 * mutant BUG_NO_CHECK       WonIsReal    a removed number wins again: its late creation is not checked
 * mutant BUG_CHECK_BEFORE   WonIsReal    the boundary is read before the creation, not after
 * mutant BUG_PUT_BOUNDARY   BoundaryAscends  the boundary is put, not swapped: a late folder moves it back
 * mutant BUG_DELETE_FIRST   WonIsReal|HeadIsFound|NoFalseDamage|NothingLost  manifests are removed before the boundary has moved
 * mutant BUG_FOLD_HEAD      HeadIsFound  the boundary reaches the head, and the newest manifest is removed
 * mutant BUG_NO_SECOND_LOOK HeadIsFound  the search for the head does not look at the boundary once more
 * mutant BUG_READ_UNCHECKED ReadIsReal   a reader believes a manifest without a look at the boundary
 * mutant BUG_BOUNDARY_FIRST NothingLost  the boundary moves before the documents are there
 */

hidden byte WonIsReal, BoundaryAscends, HeadIsFound, ReadIsReal, NoFalseDamage, NothingLost, NoGap;

byte openings;             /* of all workers, so far: the content of what they write */
byte stored[MANIFESTS+1];  /* manifests/<n>: whose content, 0 if there is none */
byte head;                 /* the newest manifest that was ever committed */
byte real[MANIFESTS+1];    /* what was committed: the first object of each number */
byte doc[MANIFESTS+1];     /* what the document says of manifest n, 0 without one */
byte boundary;             /* manifests up to here were removed, or may be at any time */

mtype = { Closed, Search, Look, Create, Check, Read, Fold, Swap, Delete };

proctype Worker() {
	byte me, at, began, seen;
	mtype pc = Closed;
end:	do
	/* Open: begin to search for the head behind the boundary. */
	:: atomic { pc == Closed && openings < OPENINGS ->
		openings++; me = openings; began = head;
		at = boundary; pc = Search }
	/* One probe: is there the next manifest? */
	:: atomic { pc == Search ->
		if
		:: at < MANIFESTS && stored[at + 1] != 0 -> at++
		:: else -> pc = Look
		fi }
	/* Read the boundary again. If it has reached what was found, the search has met the removal. The manifest
	   behind the boundary is always there. */
	:: atomic { pc == Look ->
		if
#ifndef BUG_NO_SECOND_LOOK
		:: boundary > 0 && boundary >= at ->
			assert(HeadIsFound || stored[boundary + 1] != 0);
			at = boundary; pc = Search
#endif
		:: else ->
			/* What was found is there, was committed, and is no older than the head when the search began. */
			assert(HeadIsFound || at == 0 || stored[at] == real[at]);
			assert(HeadIsFound || at >= began);
			began = 0; pc = Create
		fi }

	/* Create the manifest after the head, if its number is free. */
#ifdef BUG_CHECK_BEFORE
	:: atomic { pc == Create && seen != boundary -> seen = boundary }
#endif
	:: atomic { pc == Create && at < MANIFESTS ->
		if
		:: stored[at + 1] == 0 ->
			stored[at + 1] = me;
			if
			:: at + 1 > head -> assert(NoGap || at == head); head = at + 1; real[head] = me
			:: else /* a number that was removed */
			fi;
			if :: pc = Check :: true /* the answer is lost: try again */ fi
		:: stored[at + 1] == me -> pc = Check /* an earlier attempt */
		:: else -> goto closed /* fenced */
		fi }
	/* The number counts only if the boundary is below it now. */
	:: atomic { pc == Check ->
		if
#ifdef BUG_NO_CHECK
		:: false -> skip
#else
#ifdef BUG_CHECK_BEFORE
		:: seen >= at + 1 -> goto closed /* as it was before the creation */
#else
		:: boundary >= at + 1 -> goto closed /* fenced */
#endif
#endif
		:: else ->
			at++;
			assert(WonIsReal || real[at] == me);
			pc = Create
		fi }
	/* Killed, or told to stop. */
	:: atomic { pc != Closed && openings < OPENINGS -> goto closed }
	od;
closed:	atomic { me = 0; at = 0; began = 0; seen = 0; pc = Closed; goto end }
}

proctype Folder() {
	byte old, to, n, got;
	mtype pc = Closed;
end:	do
	/* Choose the new boundary: below the head. */
	:: atomic { pc == Closed && head > boundary + 1 ->
		old = boundary; to = old + 1;
#ifdef BUG_FOLD_HEAD
		do :: to < head -> to++ :: break od;
#else
		do :: to + 1 < head -> to++ :: break od;
#endif
		n = old + 1;
#ifdef BUG_BOUNDARY_FIRST
		pc = Swap
#else
		pc = Read
#endif
		}
	/* Write down what each manifest says, in a document that is created if there is none. */
	:: atomic { pc == Read ->
		if
		:: doc[n] != 0 -> n++ /* another folder was faster */
		:: doc[n] == 0 && stored[n] != 0 -> got = stored[n]; pc = Fold
		:: else -> /* removed meanwhile, by a folder whose document is there by now */
			assert(NothingLost || doc[n] != 0)
		fi;
		if :: pc == Read && n > to -> n = 1; pc = Swap :: else fi }
	:: atomic { pc == Fold ->
		if :: doc[n] == 0 -> doc[n] = got; assert(NothingLost || got == real[n]) :: else fi;
		got = 0; n++;
		if :: n > to -> n = 1; pc = Swap :: else -> pc = Read fi }
	/* Move the boundary, if nobody has moved it since. */
	:: atomic { pc == Swap ->
#ifdef BUG_DELETE_FIRST
		stored[to] = 0;
#endif
		if
#ifdef BUG_PUT_BOUNDARY
		:: true ->
#else
		:: boundary != old -> goto closed
		:: boundary == old ->
#endif
			assert(BoundaryAscends || to > boundary);
			boundary = to; n = 1; pc = Delete
		fi }
	/* Remove one manifest after another, now or long after. Late objects of any number up to it may go as well. */
	:: atomic { pc == Delete ->
		stored[n] = 0; n++;
		if :: n > to -> goto closed :: else fi }
	/* Killed. Another folder goes on. */
	:: atomic { pc != Closed -> goto closed }
	od;
closed:	atomic { old = 0; to = 0; n = 0; got = 0; pc = Closed; goto end }
}

/* Reads a manifest that it knows to be committed, from what stands behind the boundary, or from the document. */
proctype Reader() {
	byte n, got;
	mtype pc = Closed;
end:	do
	:: atomic { pc == Closed && head > 0 ->
		n = 1;
		do :: n < head -> n++ :: break od;
		pc = Read }
	:: atomic { pc == Read ->
		got = stored[n]; pc = Check }
	:: atomic { pc == Check ->
		if
#ifdef BUG_READ_UNCHECKED
		:: got != 0 -> assert(ReadIsReal || got == real[n])
		:: got == 0 && boundary >= n -> assert(NothingLost || doc[n] == real[n])
#else
		:: boundary >= n -> assert(NothingLost || doc[n] == real[n])
		:: boundary < n && got != 0 -> assert(ReadIsReal || got == real[n])
#endif
		:: else -> assert(NoFalseDamage || got != 0) /* "the log is damaged" */
		fi;
		n = 0; got = 0; pc = Closed }
	od
}

init {
	atomic {
		byte i;
		for (i : 1 .. WORKERS) { run Worker() }
		for (i : 1 .. FOLDERS) { run Folder() }
		if :: READERS > 0 -> run Reader() :: else fi
	}
}
