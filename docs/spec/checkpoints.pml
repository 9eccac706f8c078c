/*
 * Checkpoints and their collection: PROTOCOL.md, "Checkpoints".
 *
 * SESSIONS sessions of one shard upload copies of their states; the copy at manifest q consists of two files
 * with contents q-1 and q, as tables of an engine are shared by the copies before and after. COLLECTORS
 * collectors remove what rule 2 allows, one object at a time, by a list that may be as old as one likes. Any
 * of them may stand still for any time between two calls, or for ever, which is to be killed. The answer to
 * the creation of a document may be lost.
 *
 * run -DSESSIONS=3 -DCOLLECTORS=1 -DNUMBERS=3
 * run -DSESSIONS=2 -DCOLLECTORS=1 -DNUMBERS=4
 *
 * mutants -DSESSIONS=2 -DCOLLECTORS=1 -DNUMBERS=4
 * mutant BUG_FRESH_ANY       KeptAreWhole  a session names files that it uploaded for any number
 * mutant BUG_FILES_OF_NEWEST KeptAreWhole  a collector removes files numbered M, too
 * mutant BUG_NAMED_BY_ONE    KeptAreWhole  a collector keeps only what M names
 * mutant BUG_PUT_DOCUMENT    KeptAreWhole|SeqAscends  a document is put, not created
 * mutant BUG_KEEP_NONE      KeptAreWhole|SeqAscends  all documents are removed: a removed number is given again
 * mutant BUG_NO_SEQ_CHECK    SeqAscends    a session creates a document that is older than the newest
 */

#define SEQS NUMBERS   /* manifests that a checkpoint may stand at */
#define CONTENTS (SEQS + 1)

hidden byte KeptAreWhole, SeqAscends;

#define bitOf(n) (1 << (n))
/* The bit of a file in stored[number]: each session names its files itself. */
#define file(session, content) bitOf((session) * CONTENTS + (content))

short stored[NUMBERS + 2];  /* state/files/<number>-<session>-…: bit per session and content */
byte docs;                  /* state/checkpoints/<number>: bit per number */
byte seq[NUMBERS + 2];
/* A document's two files, the older content first: the number and the session in the key. */
byte aNumber[NUMBERS + 2], aSession[NUMBERS + 2], bNumber[NUMBERS + 2], bSession[NUMBERS + 2];

/* newestTwo sets m to the newest document and l to the one before it, 0 if there is none. */
inline newestTwo(m, l) {
	m = NUMBERS + 1;
	do :: m > 0 && !(docs & bitOf(m)) -> m-- :: else -> break od;
	l = (m > 0 -> m - 1 : 0);
	do :: l > 0 && !(docs & bitOf(l)) -> l-- :: else -> break od
}

#define whole(n) ((stored[aNumber[n]] & file(aSession[n], seq[n] - 1)) && \
	(stored[bNumber[n]] & file(bSession[n], seq[n])))

/* The two documents that are kept name only files that are there. */
inline check(m, l) {
	newestTwo(m, l);
	assert(KeptAreWhole || m == 0 || whole(m));
	assert(KeptAreWhole || l == 0 || whole(l));
	assert(SeqAscends || l == 0 || seq[m] > seq[l]);
	m = 0; l = 0
}

mtype = { Idle, Upload, Create };

proctype Session(byte me) {
	byte q, m, l, x, y;
	byte number, anum, ases, bnum, bses;  /* of the document in the making */
	byte fresh[CONTENTS];                 /* number of this session's upload of a content, 0 if none */
	mtype pc = Idle;

end:	do
	/* The state stands at a newer manifest: read the newest two documents, and choose the files. */
	:: atomic { pc == Idle && q < SEQS ->
		q++;
		do :: q < SEQS -> q++ :: break od;
		newestTwo(m, l);
		if
#ifndef BUG_NO_SEQ_CHECK
		:: (m > 0 && seq[m] >= q) || (l > 0 && seq[l] >= q) -> m = 0; l = 0
		:: !((m > 0 && seq[m] >= q) || (l > 0 && seq[l] >= q)) && m < NUMBERS + 1 ->
#else
		:: m < NUMBERS + 1 ->
#endif
			number = m + 1;
			/* The older content: of M-1 or M, or of this session. */
			if :: l > 0 && seq[l] == q - 1 -> anum = bNumber[l]; ases = bSession[l] :: else fi;
			if :: m > 0 && seq[m] == q - 1 -> anum = bNumber[m]; ases = bSession[m] :: else fi;
			if
			:: m > 0 && seq[m] == q -> anum = aNumber[m]; ases = aSession[m]; bnum = bNumber[m]; bses = bSession[m]
			:: else
			fi;
#ifdef BUG_FRESH_ANY
			if :: fresh[q - 1] > 0 -> anum = fresh[q - 1]; ases = me :: else fi;
			if :: fresh[q] > 0 -> bnum = fresh[q]; bses = me :: else fi;
#else
			if
			:: fresh[q - 1] > 0 && fresh[q - 1] >= m -> anum = fresh[q - 1]; ases = me
			:: else -> fresh[q - 1] = 0
			fi;
			if :: fresh[q] > 0 && fresh[q] >= m -> bnum = fresh[q]; bses = me :: else -> fresh[q] = 0 fi;
#endif
			m = 0; l = 0; pc = Upload
		:: else -> m = 0; l = 0
		fi }

	/* Upload the files that are not known, named with the number. */
	:: atomic { pc == Upload ->
		if
		:: anum == 0 ->
			anum = number; ases = me; fresh[q - 1] = number; stored[number] = stored[number] | file(me, q - 1)
		:: else
		fi;
		if
		:: bnum == 0 ->
			bnum = number; bses = me; fresh[q] = number; stored[number] = stored[number] | file(me, q)
		:: else
		fi;
		pc = Create }

	/* Create the document, if its number is free. */
	:: atomic { pc == Create ->
		if
#ifndef BUG_PUT_DOCUMENT
		:: docs & bitOf(number) -> skip /* another session was faster, or an earlier request had arrived */
		:: !(docs & bitOf(number)) ->
#else
		:: true ->
#endif
			docs = docs | bitOf(number); seq[number] = q;
			aNumber[number] = anum; aSession[number] = ases; bNumber[number] = bnum; bSession[number] = bses;
			check(m, l)
		:: true -> skip /* the request is lost; what was uploaded is known to this session */
		fi;
		number = 0; anum = 0; ases = 0; bnum = 0; bses = 0;
		/* Forget uploads of contents that no later state has. */
		x = 0;
		do :: x + 1 <= q -> fresh[x] = 0; x++ :: else -> break od;
		if :: q == SEQS -> fresh[q] = 0 :: else fi;
		x = 0; pc = Idle }
	od
}

proctype Collector() {
	byte m, l, n, s, c;
	byte newest, oldest;          /* of the documents kept, as this collector has read them */
	short named[NUMBERS + 2];     /* files that the two name */

end:	do
	/* Read the documents. */
	:: atomic { docs != 0 && newest == 0 ->
		newestTwo(m, l);
		newest = m; oldest = (l > 0 -> l : m);
		named[aNumber[m]] = named[aNumber[m]] | file(aSession[m], seq[m] - 1);
		named[bNumber[m]] = named[bNumber[m]] | file(bSession[m], seq[m]);
#ifndef BUG_NAMED_BY_ONE
		if
		:: l > 0 ->
			named[aNumber[l]] = named[aNumber[l]] | file(aSession[l], seq[l] - 1);
			named[bNumber[l]] = named[bNumber[l]] | file(bSession[l], seq[l])
		:: else
		fi;
#endif
		m = 0; l = 0 }

	/* Remove an older document. */
#ifdef BUG_KEEP_NONE
	:: atomic { newest > 0 && (docs & (bitOf(newest + 1) - 1)) ->
#else
	:: atomic { newest > 0 && (docs & (bitOf(oldest) - 1)) ->
#endif
		n = 1;
		do :: !(docs & bitOf(n)) -> n++ :: else -> break od;
		docs = docs & ~bitOf(n);
		aNumber[n] = 0; aSession[n] = 0; bNumber[n] = 0; bSession[n] = 0; seq[n] = 0; n = 0;
		check(m, l) }

	/* Remove the files of one number that neither document names. */
	:: atomic { newest > 1 ->
		n = 1;
#ifdef BUG_FILES_OF_NEWEST
		do :: n < newest -> n++ :: break od;
#else
		do :: n + 1 < newest -> n++ :: break od;
#endif
		stored[n] = stored[n] & named[n]; n = 0;
		check(m, l) }

	/* Begin again. */
	:: atomic { newest > 0 ->
		newest = 0; oldest = 0; n = 0;
		do :: n <= NUMBERS -> named[n] = 0; n++ :: else -> break od;
		named[n] = 0; n = 0 }
	od
}

init {
	atomic {
		byte i;
		for (i : 1 .. SESSIONS) { run Session(i - 1) }
		for (i : 1 .. COLLECTORS) { run Collector() }
	}
}
