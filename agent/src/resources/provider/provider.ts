import type { FieldChange, ResourceAction } from '@muster/protocol';
import type { ResolvedResource, ResourceType } from '@muster/protocol/module';
import type { Accounts } from '../../host/accounts/accounts.ts';
import type { Clock } from '../../host/clock.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import type { CommandResult, ProcessIdentity } from '../../host/processes/run-command.ts';

/** What is kept of things: JSON, so that the journal can hold it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What a provider may reach the machine by, and what it must report as it goes. */
export interface Machine {
  walk: PathWalk;
  accounts: Accounts;
  clock: Clock;
  /** Keeps contents that are about to be replaced, so that removal can bring them back. */
  copies: ContentCopies;
  /** Directories that were made because something below them was declared. Removed again once empty. */
  ourDirectories: ReadonlySet<string>;
  /** Those of them that this operation made: a resource that declares one counts as its creator. */
  freshDirectories: ReadonlySet<string>;
  /** Whether this operation declares something to be at this path or below it: then it is nobody's to remove. */
  declared(path: string): boolean;
  /** Whether a resource of this operation answers for the directory at this path itself. */
  declaredDirectory(path: string): boolean;
  /** Names in this directory changed: it is synced before the result is reported. */
  changedDirectory(path: string): void;
  /**
   * What many resources need and one read can tell: read on first use in an operation, and kept until it is stale.
   * Two that ask at the same time wait for one read; one that failed is tried again by whoever asks next.
   */
  database<T>(database: Database<T>): Promise<T>;
  /**
   * What was read may no longer hold, because of what was just changed. Without arguments: all of it; `accounts` too,
   * which is also read anew with the database of accounts.
   */
  stale(...databases: readonly Database<unknown>[]): void;
  /** Every resource of this kind in the operation, those to be removed too: for one read that serves all of them. */
  resourcesOf(type: ResourceType): readonly ResolvedResource[];
  /**
   * A program was started that may outlive the agent.
   * @param fate whether it is killed in the end when the agent stops, or left to itself as a package transaction is
   */
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  /** Aborted when the agent stops: what goes on by itself is then waited for no longer. */
  stop: AbortSignal;
  /** Tells whoever looks after this machine. */
  warn(message: string): void;
  /** A program that changes the machine for this resource prints something: shown to those who watch, unless sensitive. */
  printed(resource: ResolvedResource, stream: 'stdout' | 'stderr', piece: Buffer): void;
  limits: ProviderLimits;
}

/** Something of the machine that is read as a whole, such as the list of installed packages. */
export interface Database<T> {
  /** Unique among databases. */
  readonly name: string;
  /** Looks, and changes nothing. */
  read(machine: Machine): T | Promise<T>;
}

/** What a change of one resource may bring that others have to wait for. */
export type Brought = 'accounts' | 'units' | 'programs' | 'packages';

export interface ProviderLimits {
  /** Milliseconds for the `apply` and `undo` of a script. */
  scriptMs: number;
  /** Milliseconds for the `check` of a script, and for `validate`. */
  checkMs: number;
  /** Bytes kept of each stream of a script. */
  outputBytes: number;
  /** Milliseconds for one package transaction, and for refreshing the lists of packages. */
  packageMs: number;
  /** Milliseconds that a package transaction waits for another to end. */
  packageLockMs: number;
}

export interface ContentCopies {
  /** Keeps a content under its hash; it is on disk when this resolves. */
  keep(content: Buffer | { openFd: number }): Promise<CopyReference>;
  /** Path of a kept content. */
  pathOf(reference: CopyReference): string;
  /** A kept content, or null when it is larger than `limit`. */
  read(reference: CopyReference, limit: number): Buffer | null;
}

export interface CopyReference {
  sha256: string;
  size: number;
}

/** What the engine knows that bears on what is to be done. */
export interface Circumstances {
  purpose: 'apply' | 'plan' | 'drift';
  /** Ids of resources whose change obliges this one to run, reload or restart. */
  rerunBy: readonly string[];
  reloadBy: readonly string[];
  restartBy: readonly string[];
  /** The resource as it was when it last succeeded here; null when it never did. */
  succeeded: ResolvedResource | null;
  /** Whether what is at this path now will be gone by the time this is carried out. */
  willBeGone(path: string): boolean;
  /** Whether something that is not at this path now will have been put there by then. */
  willBeThere(path: string): boolean;
  /** Whether something below this directory will have been made by then. */
  willHold(directory: string): boolean;
}

/** What is to be done about one resource. Empty `changes` do not mean that nothing is: `action` tells. */
export interface Difference {
  action: ResourceAction;
  changes: FieldChange[];
  /** Unified diff of the content. */
  diff: string | null;
  /**
   * What must be there first and is not, such as a user, with a message for people. An earlier resource may bring it: a
   * plan then counts on it, an apply looks again when it gets there.
   */
  awaits?: { kind: Brought; message: string }[];
  /** Worth saying to people. */
  message?: string;
  /** This directory is ours, and stays only because something is in it. */
  stillOurs?: string;
}

export interface Outcome {
  /** Why it failed, when it ran and failed. */
  failure?: string;
  /** What was said last, as it follows `failure`: told unless it may hold what is, or was until now, a secret. */
  words?: string;
  message?: string;
  /** Of `together`: what is recorded for removal from now on, where that is more than was known before. */
  before?: Json;
  output?: Pick<CommandResult, 'stdout' | 'stderr' | 'exitCode' | 'truncated'>;
}

/** One of several resources that are carried out in one go. */
export interface Item<Seen = unknown, Before extends Json = Json> {
  kind: 'apply' | 'remove';
  resource: ResolvedResource;
  seen: Seen;
  difference: Difference;
  /** What was recorded before the first change; null when what was there is not ours to bring back. */
  before: Before | null;
}

/**
 * How one kind of resource is carried out.
 *
 * `observe` never changes anything on the machine. `diff` and `diffRemoval` decide and do nothing else: the same
 * function makes the plan and the apply, so that they agree. Everything that fails does so with a HostFailure.
 *
 * @typeParam Seen what `observe` finds; plain data. `inBrief` turns it into what is journaled.
 */
export interface Provider<Seen = unknown, Before extends Json = Json> {
  readonly type: ResourceType;
  /**
   * Whether looking again tells what a killed agent had done. Such resources are journaled together, a run at a time,
   * and looked at before the first of the run is changed; others are journaled one by one, before and after.
   */
  readonly recheckable: boolean;
  /** What a change of it may bring that others wait for. */
  brings(resource: ResolvedResource): readonly Brought[];
  /** What a change of it may bring besides, to those that depend on it and to no others. */
  bringsToDependents?(resource: ResolvedResource): readonly Brought[];
  /**
   * Paths that a change of it makes besides `path`. What is declared there or below is looked at again after it, so that
   * what came with it (the files of a new home, say) is seen.
   */
  makes?(resource: ResolvedResource, seen: Seen): readonly string[];
  /** Paths it decides over: no two resources of one run may have one inside the other, unless it is a directory. */
  path(resource: ResolvedResource): string | null;
  /**
   * Paths whose change may mean that the machine is not as declared any more, for a check at once; one that ends in `/`
   * stands for everything in that directory. Absent: its `path`, if it has one. What only a look can tell has none.
   */
  watched?(resource: ResolvedResource): readonly string[];
  /** Refuses a body that cannot be carried out, without looking at the machine. */
  check(resource: ResolvedResource): void;
  observe(resource: ResolvedResource, circumstances: Circumstances, machine: Machine): Seen | Promise<Seen>;
  diff(resource: ResolvedResource, seen: Seen, circumstances: Circumstances): Difference;
  /** What the journal keeps of what was seen: enough for `diff` to name the same action and fields again. */
  inBrief(seen: Seen): Json;
  /** Of one that is not re-checkable: whether `observe` nevertheless tells if an interrupted execution got done. */
  canTell(resource: ResolvedResource): boolean;
  /** Bytes that `seen` holds in memory. */
  weight(seen: Seen): number;
  /**
   * Records what is there now of what is about to change for the first time.
   * @param before what was recorded at earlier changes; never lost
   */
  remember(
    resource: ResolvedResource,
    seen: Seen,
    difference: Difference,
    before: Before | null,
    machine: Machine,
  ): Promise<Before>;
  /** What to record although nothing changes, because it is ours already. */
  claim(resource: ResolvedResource, machine: Machine): Before | null;
  apply(resource: ResolvedResource, seen: Seen, difference: Difference, machine: Machine): Promise<Outcome>;
  observeForRemoval(resource: ResolvedResource, before: Before, machine: Machine): Seen | Promise<Seen>;
  /** Not asked about what was as declared when we came: that is left. */
  diffRemoval(
    resource: ResolvedResource,
    before: Before,
    seen: Seen,
    circumstances: Circumstances,
    copies: Pick<ContentCopies, 'read'>,
  ): Difference;
  remove(
    resource: ResolvedResource,
    before: Before,
    seen: Seen,
    difference: Difference,
    machine: Machine,
  ): Promise<Outcome>;
  /**
   * Carries out several neighbours in one go, such as packages in one transaction: all of them are to be applied or all
   * to be removed, and none depends on another. Resources of a kind that has it are journaled a batch at a time, before
   * and after, and `apply` and `remove` are not called. One outcome for each, in order; a HostFailure fails all of them.
   */
  together?(items: readonly Item<Seen, Before>[], machine: Machine): Promise<Outcome[]>;
  /**
   * Makes the ground fit to be looked at again after the agent was killed in the middle of `together`; what it had
   * started has ended by then.
   */
  recover?(machine: Machine): Promise<void>;
  /**
   * Of one that got done in a batch before the agent was killed: what is recorded for removal, as far as that can only be
   * told afterwards. Absent: what was recorded before.
   */
  afterwards?(resource: ResolvedResource, before: Before, machine: Machine): Promise<Before>;
  /**
   * Whether what was to be done had been done when the agent was killed; absent: when `diff` finds nothing any more. For
   * what leaves no other trace, such as a restart.
   * @param brief what `inBrief` made of what was seen before it
   */
  gotDone?(resource: ResolvedResource, brief: Json, seenNow: Seen, original: Difference): boolean;
}

/** Nothing is to be done. */
export const nothing = (message?: string): Difference => ({
  action: 'none',
  changes: [],
  diff: null,
  ...(message === undefined ? {} : { message }),
});

/** Something is there that is declared absent: an apply might refuse to remove it, it is drift all the same. */
export const presenceDrift = (): Difference => ({
  action: 'remove',
  changes: [{ field: 'ensure', from: 'present', to: 'absent' }],
  diff: null,
});

/** Something of another type took its place: an apply would refuse to touch that, as drift it has a name. */
export const typeDrift = (found: { type: string; kind?: string }, wanted: string): Difference => ({
  action: 'update',
  changes: [{ field: 'type', from: found.kind ?? found.type, to: wanted }],
  diff: null,
});
