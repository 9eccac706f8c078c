/*
 * One commit for all shards of a session: PROTOCOL.md, "Group commit".
 *
 * The manifests of a shard have the numbers 1, 2, 3, ... A number lies in the shard's own log or in a session's log. A
 * delegation in the own log says which session has the numbers after it, and from which of its group manifests on: the
 * k-th group manifest from there has the k-th number. A group manifest has the next number of every shard that is
 * delegated to the session. The line of a shard in a session ends at the session's seal, or at the first group manifest
 * that does not have the shard; the number after it lies in the own log again.
 *
 * A worker that takes a shard over walks to the end of the line, seals the session there, and creates the shard's next
 * delegation, to its own session. Every object is created under the condition that its number is free. A request may
 * arrive after its sender has died.
 *
 * A worker that gives a shard up in good order lets go of it: its next group manifest does not have the shard. Whoever
 * takes the shard over finds the end of the line there and seals nothing, so the session goes on with its other shards.
 *
 * A folder moves the boundary of a shard and removes what lies behind it: entries of the own log but the newest one, and
 * group manifests of which every number lies behind the boundary of its shard. Seals stay. A removed number is free, so
 * whoever has created a seal or a delegation looks at the boundary before it believes in it. The writer of a session
 * need not look: the seal that ends its session stays.
 *
 * WORKERS workers with SESSIONS openings in all share SHARDS shards. A worker may be killed at any point, and stand
 * still for any time. A reader looks for a number that exists.
 *
 * run -DSHARDS=2 -DWORKERS=2 -DSESSIONS=3 -DLENGTH=2 -DNUMBERS=4
 * run -DSHARDS=2 -DWORKERS=2 -DSESSIONS=2 -DLENGTH=2 -DNUMBERS=3 -DFOLD -DREADERS=1
 * run -DSHARDS=1 -DWORKERS=2 -DSESSIONS=3 -DLENGTH=3 -DNUMBERS=6 -DFOLD
 * run -DSHARDS=1 -DWORKERS=2 -DSESSIONS=3 -DLENGTH=2 -DNUMBERS=5 -DFOLD -DLATE
 *
 * mutants -DSHARDS=1 -DWORKERS=2 -DSESSIONS=3 -DLENGTH=3 -DNUMBERS=6 -DFOLD -DREADERS=1
 * mutant BUG_NO_SEAL          OneHistory    a shard is taken over from a session that is not sealed
 * mutant BUG_READ_THEN_SEAL   OneHistory    what was read of a session before it was sealed is taken for all
 * mutant BUG_OVERWRITE        OneHistory|HeadIsFound  a delegation is written over another one
 * mutant BUG_NEXT_NUMBER      OneHistory|HeadIsFound  a worker whose session was sealed tries the next number
 * mutant BUG_EARLY            OneHistory    a session commits for a shard before it is delegated to it
 * mutant BUG_NO_CHECK         WonIsReal|OneHistory  nobody looks at the boundary after a delegation
 * mutant BUG_NO_CHECK_SEAL    HeadIsFound|OneHistory  nobody looks at the boundary between seal and delegation
 * mutant BUG_REMOVE_SEAL      WonIsReal|OneHistory  seals are removed like group manifests
 * mutant BUG_REMOVE_NEWEST    HeadIsFound|OneHistory  the newest delegation behind the boundary is removed
 * mutant BUG_READER_STOPS     HeadIsFound   a reader does not look in the session of a delegation
 * mutant BUG_GO_ON/1          OneHistory    a worker commits again for a shard that it has let go, without a delegation
 * mutant BUG_LET_GO_WON/1     OneHistory    a window counts as committed, and the group manifest is without its shard
 */

#define SEAL 2

#define OWN(p, n)    own[(p) * (NUMBERS + 1) + (n)]     /* session + 1, 0 for none */
#define FROM(p, n)   from[(p) * (NUMBERS + 1) + (n)]
#define KIND(s, g)   kind[(s) * (LENGTH + 2) + (g)]     /* 0 none, 1 group manifest, SEAL */
#define NUM(s, g, p) num[((s) * (LENGTH + 2) + (g)) * SHARDS + (p)]

hidden byte OneHistory, WonIsReal, HeadIsFound;

byte own[SHARDS * (NUMBERS + 1)];
byte from[SHARDS * (NUMBERS + 1)];
byte kind[SESSIONS * (LENGTH + 2)];
byte num[SESSIONS * (LENGTH + 2) * SHARDS];
byte head[SHARDS];              /* the newest number that was ever committed */
byte boundary[SHARDS];
byte sessions;

#ifdef LATE
byte lateKind, lateP, lateN, lateS, lateG;      /* a request under way, whose sender has died */
#endif

mtype = { Idle, Find, Walk, Sealed, Take, Taken };

/* A number was created. One behind the boundary is nobody's: it may only be believed by mistake. */
inline count(p, n) {
	if
	:: n > boundary[p] -> assert(OneHistory || n == head[p] + 1); head[p] = n
	:: else
	fi
}

inline createOwn(p, n, s, g) {
	if
#ifdef BUG_OVERWRITE
	:: true -> OWN(p, n) = s; FROM(p, n) = g; count(p, n); won = 1
#else
	:: OWN(p, n) == 0 -> OWN(p, n) = s; FROM(p, n) = g; count(p, n); won = 1
	:: else -> won = OWN(p, n) == s && FROM(p, n) == g
#endif
	fi
}

proctype Worker() {
	byte s;                 /* own session + 1, 0 for none */
	byte g;                 /* next number of its log */
	byte at[SHARDS];        /* newest number of the shards that are delegated to it, 0 for others */
	byte p, x, k, cur, won; /* of a takeover */
	mtype pc = Idle;

end:	do
	:: atomic { pc == Idle && s == 0 && sessions < SESSIONS -> sessions++; s = sessions; g = 1 }

	/* Commit for all shards of the session. */
#ifdef BUG_EARLY
	:: atomic { (pc == Idle || pc == Take) && s > 0 && g <= LENGTH && (at[0] > 0 || at[SHARDS - 1] > 0) &&
#else
	:: atomic { pc == Idle && s > 0 && g <= LENGTH && (at[0] > 0 || at[SHARDS - 1] > 0) &&
#endif
		at[0] < NUMBERS && at[SHARDS - 1] < NUMBERS ->
		if
		:: KIND(s - 1, g) == 0 ->
			KIND(s - 1, g) = 1;
			if
			:: at[0] > 0 -> at[0]++; NUM(s - 1, g, 0) = at[0];
				assert(WonIsReal || at[0] > boundary[0]); count(0, at[0])
			:: else
			fi;
#if SHARDS > 1
			if
			:: at[1] > 0 -> at[1]++; NUM(s - 1, g, 1) = at[1];
				assert(WonIsReal || at[1] > boundary[1]); count(1, at[1])
			:: else
			fi;
#endif
			g++
#ifdef BUG_NEXT_NUMBER
		:: KIND(s - 1, g) != 0 -> g++
#else
		:: KIND(s - 1, g) != 0 -> s = 0; g = 0; at[0] = 0; at[SHARDS - 1] = 0
#endif
		fi }

#if SHARDS > 1
	/* Let go of a shard, and commit for the other one. */
	:: atomic { pc == Idle && s > 0 && g <= LENGTH && at[0] > 0 && at[1] > 0 && at[0] < NUMBERS && at[1] < NUMBERS ->
		if
		:: KIND(s - 1, g) == 0 ->
			KIND(s - 1, g) = 1;
			if :: p = 0; x = 1 :: p = 1; x = 0 fi;
			at[x]++; k = at[x]; NUM(s - 1, g, x) = k;
			assert(WonIsReal || k > boundary[x]); count(x, k);
#ifdef BUG_LET_GO_WON
			k = at[p] + 1; count(p, k);
#endif
#ifndef BUG_GO_ON
			at[p] = 0;
#endif
			p = 0; x = 0; k = 0; g++
		:: KIND(s - 1, g) != 0 -> s = 0; g = 0; at[0] = 0; at[SHARDS - 1] = 0
		fi }
#endif

	/* Take over a shard: look at its boundary, and find the newest entry of its own log. */
	:: atomic { pc == Idle && s > 0 && g <= LENGTH && (at[0] == 0 || at[SHARDS - 1] == 0) ->
		if :: at[0] == 0 -> p = 0 :: at[SHARDS - 1] == 0 -> p = SHARDS - 1 fi;
		cur = boundary[p];
		pc = Find }
	:: atomic { pc == Find ->
		k = NUMBERS;
		do :: k > 0 && OWN(p, k) == 0 -> k-- :: else -> break od;
		if
		:: k == 0 && cur == 0 -> pc = Take
		:: k == 0 && cur > 0 -> cur = 0; p = 0; pc = Idle       /* the log was folded meanwhile */
		:: k > 0 ->
			x = OWN(p, k);
			if :: cur < k -> cur = k :: else fi;
			k = FROM(p, k) + cur - k;
			pc = Walk
		fi }
	/* Walk to the end of the line, and seal the session there. */
	:: atomic { pc == Walk ->
		if
		:: k > LENGTH + 1 -> p = 0; x = 0; k = 0; cur = 0; pc = Idle   /* the bound of this model */
		:: k <= LENGTH + 1 && KIND(x - 1, k) == 1 && NUM(x - 1, k, p) == cur + 1 -> cur++; k++
		:: k <= LENGTH + 1 && KIND(x - 1, k) == 1 && NUM(x - 1, k, p) != cur + 1 -> pc = Sealed
		:: k <= LENGTH + 1 && KIND(x - 1, k) == SEAL -> pc = Sealed
		:: k <= LENGTH + 1 && KIND(x - 1, k) == 0 ->
#ifndef BUG_NO_SEAL
#ifndef BUG_READ_THEN_SEAL
			KIND(x - 1, k) = SEAL;
#endif
#endif
			pc = Sealed
		fi }
	/* Everything that was read and created counts only if the boundary is below it now. */
	:: atomic { pc == Sealed ->
#ifdef BUG_READ_THEN_SEAL
		do :: k <= LENGTH && KIND(x - 1, k) == 1 -> k++ :: else -> break od;
		if :: KIND(x - 1, k) == 0 -> KIND(x - 1, k) = SEAL :: else fi;
#endif
		x = 0; k = 0;
		if
#ifdef BUG_NO_CHECK_SEAL
		:: cur < NUMBERS -> pc = Take
#else
		:: cur < NUMBERS && boundary[p] <= cur -> pc = Take
		:: cur < NUMBERS && boundary[p] > cur -> p = 0; cur = 0; pc = Idle
#endif
		:: cur == NUMBERS -> p = 0; cur = 0; pc = Idle          /* the bound of this model */
		fi
#ifdef BUG_EARLY
		; if :: pc == Take -> at[p] = cur + 1 :: else fi
#endif
		}
	/* Create the delegation, unless another worker was faster. */
	:: atomic { pc == Take -> cur++;
		createOwn(p, cur, s, g);
		if :: won -> pc = Taken :: else -> p = 0; cur = 0; pc = Idle fi; won = 0 }
	:: atomic { pc == Taken ->
		if
#ifdef BUG_NO_CHECK
		:: true -> assert(WonIsReal || boundary[p] < cur); at[p] = cur
#else
		:: boundary[p] < cur -> at[p] = cur
		:: else
#endif
		fi;
		p = 0; cur = 0; pc = Idle }

#ifdef LATE
	/* The process is killed while a request of it is under way. */
	:: atomic { pc == Take && lateKind == 0 ->
		lateKind = 1; lateP = p; lateN = cur + 1; lateS = s; lateG = g;
		s = 0; g = 0; at[0] = 0; at[SHARDS - 1] = 0; p = 0; cur = 0; pc = Idle }
	:: atomic { pc == Idle && s > 0 && at[0] > 0 && g <= LENGTH && at[0] < NUMBERS && lateKind == 0 ->
		lateKind = 2; lateN = at[0] + 1; lateS = s; lateG = g;
		s = 0; g = 0; at[0] = 0; at[SHARDS - 1] = 0 }
	:: atomic { pc == Walk && k <= LENGTH + 1 && KIND(x - 1, k) == 0 && lateKind == 0 ->
		lateKind = 3; lateS = x; lateG = k;
		s = 0; g = 0; at[0] = 0; at[SHARDS - 1] = 0; p = 0; x = 0; k = 0; cur = 0; pc = Idle }
#endif
	/* The process is killed, and another takes its place. */
	:: atomic { s > 0 -> s = 0; g = 0; at[0] = 0; at[SHARDS - 1] = 0; p = 0; x = 0; k = 0; cur = 0; pc = Idle }
	od
}

#ifdef LATE
proctype Late() {
	byte won;
end:	do
	:: atomic { lateKind == 1 -> createOwn(lateP, lateN, lateS, lateG); won = 0;
		lateKind = 0; lateP = 0; lateN = 0; lateS = 0; lateG = 0 }
	:: atomic { lateKind == 2 ->
		if
		:: KIND(lateS - 1, lateG) == 0 -> KIND(lateS - 1, lateG) = 1; NUM(lateS - 1, lateG, 0) = lateN;
			count(0, lateN)
		:: else
		fi;
		lateKind = 0; lateN = 0; lateS = 0; lateG = 0 }
	:: atomic { lateKind == 3 ->
		if :: KIND(lateS - 1, lateG) == 0 -> KIND(lateS - 1, lateG) = SEAL :: else fi;
		lateKind = 0; lateS = 0; lateG = 0 }
	od
}
#endif

#ifdef FOLD
/* Moves boundaries, and removes what lies behind them. */
proctype Folder() {
	byte p, n, s, g;
end:	do
	:: atomic { boundary[0] + 1 < head[0] -> boundary[0]++ }
#if SHARDS > 1
	:: atomic { boundary[1] + 1 < head[1] -> boundary[1]++ }
#endif
	:: atomic { boundary[0] > 0 || boundary[SHARDS - 1] > 0 ->
		if :: p = 0 :: p = SHARDS - 1 fi;
		n = 1;
		do
		:: n <= boundary[p] && OWN(p, n) == 0 -> n++
		:: n <= boundary[p] && OWN(p, n) != 0 -> break
		:: n > boundary[p] -> break
		od;
		if
		:: n <= boundary[p] ->
			s = 0; g = n + 1;       /* is it the newest one behind the boundary? */
			do :: g <= boundary[p] && OWN(p, g) == 0 -> g++ :: else -> break od;
#ifdef BUG_REMOVE_NEWEST
			OWN(p, n) = 0; FROM(p, n) = 0
#else
			if :: g <= boundary[p] -> OWN(p, n) = 0; FROM(p, n) = 0 :: else fi
#endif
		:: else
		fi;
		p = 0; n = 0; s = 0; g = 0 }
	:: atomic { boundary[0] > 0 || boundary[SHARDS - 1] > 0 ->
		s = 0;
		do :: s < SESSIONS - 1 -> s++ :: break od;
		g = 1;
		do :: g <= LENGTH && KIND(s, g) == 0 -> g++ :: else -> break od;
		if
		:: KIND(s, g) == 1 && NUM(s, g, 0) <= boundary[0] && NUM(s, g, SHARDS - 1) <= boundary[SHARDS - 1] ->
			KIND(s, g) = 0; NUM(s, g, 0) = 0; NUM(s, g, SHARDS - 1) = 0
#ifdef BUG_REMOVE_SEAL
		:: KIND(s, g) == SEAL -> KIND(s, g) = 0
#endif
		:: else
		fi;
		s = 0; g = 0 }
	od
}
#endif

#if READERS
/* Looks for a number of shard 0 that exists. */
proctype Reader() {
	byte n, k, x, found;
end:	do
	:: atomic { head[0] > boundary[0] ->
		n = boundary[0] + 1;
		do :: n < head[0] -> n++ :: break od }
		if
		:: atomic { OWN(0, n) != 0 -> found = 1 }
		:: atomic { OWN(0, n) == 0 ->
			k = n;
			do :: k > 0 && OWN(0, k) == 0 -> k-- :: else -> break od;
			if :: k > 0 -> x = OWN(0, k); k = FROM(0, k) + n - k - 1 :: else fi }
#ifndef BUG_READER_STOPS
			atomic { if
			:: x > 0 && k <= LENGTH && KIND(x - 1, k) == 1 && NUM(x - 1, k, 0) == n -> found = 1
			:: else
			fi }
#endif
		fi;
		atomic { assert(HeadIsFound || found || boundary[0] >= n); n = 0; k = 0; x = 0; found = 0 }
	od
}
#endif

init {
	atomic {
		byte w;
		for (w : 1 .. WORKERS) { run Worker() }
#ifdef LATE
		run Late();
#endif
#ifdef FOLD
		run Folder();
#endif
#if READERS
		run Reader()
#endif
	}
}
