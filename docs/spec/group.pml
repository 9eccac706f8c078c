/*
 * One commit for all shards of a session: docs/decisions/0010. No code follows this model yet.
 *
 * The log of a shard is a list of delegations: entry i names the session whose log goes on with the shard. The log of a
 * session is a list of group manifests, each for some of the shards that are delegated to the session, and may end with
 * a seal. Both are written by creating the next number, which only one can win.
 *
 * A worker that takes a shard over seals the session of the shard's newest delegation, by winning that session's next
 * number. What the session's log says up to the seal is all that it will ever say. The worker then creates the shard's
 * next delegation, to its own session, and continues from what it has read. A worker whose number is taken by a seal
 * opens another session and takes over the shards that it still has.
 *
 * WORKERS workers with SESSIONS openings in all share two shards. A worker may be killed at any point, and stand still
 * for any time. A reader follows the delegations of a shard.
 *
 * run -DWORKERS=2 -DSESSIONS=3 -DREADERS=0
 * run -DWORKERS=2 -DSESSIONS=2 -DREADERS=1
 *
 * mutants -DWORKERS=2 -DSESSIONS=2 -DREADERS=1
 * mutant BUG_NO_SEAL          OneHistory    a shard is taken over from a session that is not sealed
 * mutant BUG_READ_THEN_SEAL   OneHistory    what was read of a session before it was sealed is taken for all
 * mutant BUG_OVERWRITE        OneHistory    a delegation is written over another one
 * mutant BUG_NEXT_NUMBER      OneHistory    a worker whose session was sealed tries the next number
 * mutant BUG_EARLY            OneHistory    a session commits for a shard before it is delegated to it
 * mutant BUG_READER_STOPS     HeadIsFound   a reader does not look for a delegation after a seal
 */

#define SHARDS 2
#ifndef LENGTH
#define LENGTH 2                /* of a session's log, with its seal */
#endif
#ifndef EPOCHS
#define EPOCHS 2                /* delegations of a shard */
#endif
#define SEAL 4                  /* or else a set of shards: bit per shard */

#define DELEGATED(p, i) delegated[(p) * (EPOCHS + 1) + (i)]
#define LOG(s, n) log[(s) * (LENGTH + 1) + (n)]

hidden byte OneHistory, HeadIsFound;

byte delegated[8];              /* SHARDS * (EPOCHS + 1): session + 1, 0 for none */
byte log[16];                   /* SESSIONS * (LENGTH + 1) */
byte committed[SHARDS];         /* group manifests that have the shard */
byte sessions;

mtype = { Idle, Find, Seal, Read, Take };

proctype Worker() {
	byte s;                 /* own session + 1, 0 for none */
	byte n;                 /* next number of its log */
	byte has;               /* shards delegated to it */
	byte known[SHARDS];     /* committed, as far as its state has it */
	byte p, i, k, j, count; /* of a takeover */
	mtype pc = Idle;

end:	do
	:: atomic { s == 0 && sessions < SESSIONS -> sessions++; s = sessions; n = 0; has = 0 }

	/* Commit for some of the shards. */
#ifdef BUG_EARLY
	:: atomic { (pc == Idle || pc == Take) && s > 0 && has > 0 && n < LENGTH ->
#else
	:: atomic { pc == Idle && s > 0 && has > 0 && n < LENGTH ->
#endif
		k = 0;
		if
		:: has & 1 -> k = 1
		:: has & 2 -> k = 2
		:: has == 3 -> k = 3
		fi;
		if
		:: LOG(s - 1, n) == 0 ->
			LOG(s - 1, n) = k; n++;
			if :: k & 1 -> assert(OneHistory || committed[0] == known[0]); committed[0]++; known[0]++ :: else fi;
			if :: k & 2 -> assert(OneHistory || committed[1] == known[1]); committed[1]++; known[1]++ :: else fi
#ifdef BUG_NEXT_NUMBER
		:: LOG(s - 1, n) != 0 -> n++
#else
		:: LOG(s - 1, n) != 0 -> s = 0; has = 0; known[0] = 0; known[1] = 0
#endif
		fi; k = 0 }

	/* Take over a shard: find its newest delegation. */
	:: atomic { pc == Idle && s > 0 && has != 3 ->
		if :: !(has & 1) -> p = 0 :: !(has & 2) -> p = 1 fi;
		pc = Find }
	:: atomic { pc == Find ->
		i = 0;
		do :: i < EPOCHS && DELEGATED(p, i) != 0 -> i++ :: else -> break od;
		if
		:: i == EPOCHS -> i = 0; p = 0; pc = Idle      /* the bound of this model */
		:: i < EPOCHS && i == 0 -> pc = Take
		:: i < EPOCHS && i > 0 -> k = 0; pc = Seal
		fi }
	/* Walk to the end of that session's log, and win the number after it. */
	:: atomic { pc == Seal && k <= LENGTH ->
		if
		:: LOG(DELEGATED(p, i - 1) - 1, k) == SEAL -> pc = Read
		:: LOG(DELEGATED(p, i - 1) - 1, k) != SEAL && LOG(DELEGATED(p, i - 1) - 1, k) != 0 -> k++
		:: LOG(DELEGATED(p, i - 1) - 1, k) == 0 ->
#ifdef BUG_NO_SEAL
			skip;
#else
#ifndef BUG_READ_THEN_SEAL
			LOG(DELEGATED(p, i - 1) - 1, k) = SEAL;
#endif
#endif
			pc = Read
		fi }
	/* Count what the sessions of all delegations say of the shard. Nothing changes any more. */
	:: atomic { pc == Read ->
		count = 0; j = 0;
		do
		:: j < i ->
			k = 0;
			do
			:: k <= LENGTH && LOG(DELEGATED(p, j) - 1, k) != 0 && LOG(DELEGATED(p, j) - 1, k) != SEAL ->
				if :: LOG(DELEGATED(p, j) - 1, k) & (1 << p) -> count++ :: else fi; k++
			:: else -> break
			od;
			j++
		:: else -> break
		od;
		j = 0; k = 0; pc = Take
#ifdef BUG_EARLY
		; has = has | (1 << p); known[p] = count
#endif
		}
	/* Create the delegation, unless another worker was faster. */
	:: atomic { pc == Take ->
#ifdef BUG_READ_THEN_SEAL
		if
		:: i > 0 ->
			do :: k <= LENGTH && LOG(DELEGATED(p, i - 1) - 1, k) != 0 && LOG(DELEGATED(p, i - 1) - 1, k) != SEAL -> k++
			:: else -> break od;
			LOG(DELEGATED(p, i - 1) - 1, k) = SEAL; k = 0
		:: else
		fi;
#endif
		if
#ifdef BUG_OVERWRITE
		:: true ->
#else
		:: DELEGATED(p, i) == 0 ->
#endif
			DELEGATED(p, i) = s; has = has | (1 << p); known[p] = count
#ifndef BUG_OVERWRITE
		:: DELEGATED(p, i) != 0 -> skip
#endif
		fi;
		p = 0; i = 0; count = 0; pc = Idle }

	/* The process is killed, and another takes its place. */
	:: atomic { s > 0 -> s = 0; n = 0; has = 0; known[0] = 0; known[1] = 0; p = 0; i = 0; k = 0; j = 0; count = 0; pc = Idle }
	od
}

/* Follows shard 0, one object at a time. */
proctype Reader() {
	byte least, count, i, k;
	least = committed[0];
again:	do
	:: atomic { i < EPOCHS && DELEGATED(0, i) == 0 -> break }
	:: atomic { i == EPOCHS -> break }
	:: atomic { i < EPOCHS && DELEGATED(0, i) != 0 ->
		if
		:: k > LENGTH -> break
		:: k <= LENGTH && LOG(DELEGATED(0, i) - 1, k) == 0 -> break
		:: k <= LENGTH && LOG(DELEGATED(0, i) - 1, k) == SEAL ->
#ifdef BUG_READER_STOPS
			break
#else
			i++; k = 0
#endif
		:: k <= LENGTH && LOG(DELEGATED(0, i) - 1, k) != 0 && LOG(DELEGATED(0, i) - 1, k) != SEAL ->
			if :: LOG(DELEGATED(0, i) - 1, k) & 1 -> count++ :: else fi; k++
		fi }
	od;
	assert(HeadIsFound || count >= least && count <= committed[0])
}

init {
	atomic {
		byte w;
		for (w : 1 .. WORKERS) { run Worker() }
#if READERS
		run Reader()
#endif
	}
}
