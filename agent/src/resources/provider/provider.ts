import type { FieldChange, ResourceAction } from '@muster/protocol';
import type { ResolvedResource, ResourceType } from '@muster/protocol/module';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import type { Accounts } from '../../host/accounts/accounts.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';

/** JSON, so that the journal can hold it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A provider's access to the machine, and the callbacks through which it reports to the engine. */
export interface Machine {
  walk: PathWalk;
  accounts: Accounts;
  clock: Clock;
  /** Keeps contents before they are replaced, so that removal can restore them. */
  copies: ContentCopies;
  /** Directories that the agent created as parents of declared paths. They are removed once they are empty. */
  ourDirectories: ReadonlySet<string>;
  /**
   * The part of `ourDirectories` that this operation created. A resource that declares such a directory counts as its
   * creator.
   */
  freshDirectories: ReadonlySet<string>;
  /** Whether this operation declares this path or a path below it. Such a path must not be removed. */
  declared(path: string): boolean;
  /** Whether a resource of this operation declares the directory at this path itself. */
  declaredDirectory(path: string): boolean;
  /** Reports that names in this directory changed. It is synced before the result is reported. */
  changedDirectory(path: string): void;
  /**
   * Data that many resources need and one read provides. It is read on first use in an operation and kept until it is
   * stale. Concurrent callers share one read. A failed read is retried by the next caller.
   */
  database<T>(database: Database<T>): Promise<T>;
  /**
   * Discards data that a change may have made out of date. Without arguments: all of it, including `accounts`, which is
   * also read again with the database of accounts.
   */
  stale(...databases: readonly Database<unknown>[]): void;
  /** Every resource of this type in the operation, including those to remove, so that one read can serve all. */
  resourcesOf(type: ResourceType): readonly ResolvedResource[];
  /**
   * Records a process that may outlive the agent.
   * @param fate `killed` when the agent stops, or `left` running, as a package transaction is
   */
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  /** Aborted when the agent stops, which ends waits for processes that are left running. */
  stop: AbortSignal;
  /** Whether the operation was cancelled, which ends waits for locks. */
  cancelled(): boolean;
  /** Logs a warning for the operator. */
  warn(message: string): void;
  /** Streams output of a program that changes the machine for this resource to live viewers, unless it is sensitive. */
  printed(resource: ResolvedResource, stream: 'stdout' | 'stderr', piece: Buffer): void;
  limits: ProviderLimits;
}

/** Data of the machine that is read as a whole, such as the list of installed packages. */
export interface Database<T> {
  /** Unique among all databases. */
  readonly name: string;
  /** Reads the data. Must not change the machine. */
  read(machine: Machine): T | Promise<T>;
}

/** Effects of a change that other resources may have to wait for. */
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
  /** Stores a content under its hash. Resolves once the content is on disk. */
  keep(content: Buffer | { openFd: number }): Promise<CopyReference>;
  /** Path of a kept content. */
  pathOf(reference: CopyReference): string;
  /** A kept content; null if it is larger than `limit`. */
  read(reference: CopyReference, limit: number): Buffer | null;
}

export interface CopyReference {
  sha256: string;
  size: number;
}

/** State of the operation that a provider's decision depends on. */
export interface Circumstances {
  purpose: 'apply' | 'plan' | 'drift';
  /** Ids of changed resources that require this resource to run, reload, or restart. */
  rerunBy: readonly string[];
  reloadBy: readonly string[];
  restartBy: readonly string[];
  /** The resource as it last succeeded here; null if it never did. */
  succeeded: ResolvedResource | null;
  /** Whether the object at this path will have been removed before this resource is applied. */
  willBeGone(path: string): boolean;
  /** Whether an object that is now missing at this path will have been created before this resource is applied. */
  willBeThere(path: string): boolean;
  /** Whether a path below this directory will have been created before this resource is applied. */
  willHold(directory: string): boolean;
}

/** The decision about one resource. `action` may require work even if `changes` is empty. */
export interface Difference {
  action: ResourceAction;
  changes: FieldChange[];
  /** Unified diff of the content. */
  diff: string | null;
  /**
   * Missing prerequisites, such as a user, each with a message for operators. An earlier resource may create them: a
   * plan assumes that it does, and an apply observes again when it reaches this resource.
   */
  awaits?: { kind: Brought; message: string }[];
  /** A note for operators. */
  message?: string;
  /** Path of a directory that the agent created and keeps only because it is not empty. */
  stillOurs?: string;
}

export interface Outcome {
  /** Reason of the failure. */
  failure?: string;
  /** Last output, appended to `failure`. Omitted if it may contain a current or former secret. */
  words?: string;
  message?: string;
  /** Set by `together`: the record for removal, if it holds more than the earlier record. */
  before?: Json;
  output?: Pick<CommandResult, 'stdout' | 'stderr' | 'exitCode' | 'truncated'>;
}

/** A resource that is applied together with others. */
export interface Item<Seen = unknown, Before extends Json = Json> {
  kind: 'apply' | 'remove';
  resource: ResolvedResource;
  seen: Seen;
  difference: Difference;
  /** The state recorded before the first change; null if the agent has no previous state to restore. */
  before: Before | null;
}

/**
 * Applies and removes one type of resource.
 *
 * `observe` never changes the machine. `diff` and `diffRemoval` decide and have no effects. Plan and apply use the same
 * functions, so that they agree. Every failure is a HostFailure.
 *
 * `defineProvider` makes one, with defaults.
 *
 * @typeParam Seen result of `observe`, as plain data; `inBrief` turns it into the journaled form
 */
export interface Provider<
  Seen = unknown,
  Before extends Json = Json,
  Resource extends ResolvedResource = ResolvedResource,
> {
  readonly type: ResourceType;
  /** The fields that its code reads, with the form of each value, such as `text` or `list?`. */
  readonly fields: Readonly<Record<string, string>>;
  /**
   * Whether observing again reveals what a killed agent had done. Such resources are journaled in runs, and observed
   * before the first resource of the run changes. Others are journaled one by one, before and after.
   */
  readonly recheckable: boolean;
  /** Effects of a change that any other resource may wait for. */
  brings(resource: Resource): readonly Brought[];
  /** Additional effects that only its dependents wait for. */
  bringsToDependents?(resource: Resource): readonly Brought[];
  /**
   * Paths besides `path` that a change creates. Resources declared at or below them are observed again afterwards, to
   * include, for example, the files of a new home.
   */
  makes?(resource: Resource, seen: Seen): readonly string[];
  /** Path that the resource owns. In one run, two such paths may be nested only if the outer one is a directory. */
  path(resource: Resource): string | null;
  /**
   * Paths whose change triggers a drift check immediately; a path that ends in `/` covers everything in that directory.
   * If absent: `path`, if the resource has one. Empty if drift can only be found by observing.
   */
  watched?(resource: Resource): readonly string[];
  /** Refuses a body that cannot be applied, without observing the machine. */
  check(resource: Resource): void;
  observe(resource: Resource, circumstances: Circumstances, machine: Machine): Seen | Promise<Seen>;
  diff(resource: Resource, seen: Seen, circumstances: Circumstances): Difference;
  /** The journaled form of `seen`: enough for `diff` to return the same action and fields. */
  inBrief(seen: Seen): Json;
  /** For a type that is not recheckable: whether `observe` still reveals if an interrupted execution finished. */
  canTell(resource: Resource): boolean;
  /** Bytes of memory that `seen` holds. */
  weight(seen: Seen): number;
  /**
   * Records the current state of everything that is about to change for the first time.
   * @param before record of earlier changes, which the result must include
   */
  remember(
    resource: Resource,
    seen: Seen,
    difference: Difference,
    before: Before | null,
    machine: Machine,
  ): Promise<Before>;
  /** Record to keep when nothing changes, if the agent already owns the object. */
  claim(resource: Resource, machine: Machine): Before | null;
  apply(resource: Resource, seen: Seen, difference: Difference, machine: Machine): Promise<Outcome>;
  observeForRemoval(resource: Resource, before: Before, machine: Machine): Seen | Promise<Seen>;
  /** Never called for an object that already was as declared before the agent managed it. That object stays. */
  diffRemoval(
    resource: Resource,
    before: Before,
    seen: Seen,
    circumstances: Circumstances,
    copies: Pick<ContentCopies, 'read'>,
  ): Difference;
  remove(resource: Resource, before: Before, seen: Seen, difference: Difference, machine: Machine): Promise<Outcome>;
  /**
   * Applies several adjacent resources together, such as packages in one transaction. Either all are applied or all are
   * removed, and none depends on another. A type with this method is journaled a batch at a time, before and after, and
   * its `apply` and `remove` are not called. Returns one outcome for each, in order. A HostFailure fails all of them.
   */
  together?(items: readonly Item<Seen, Before>[], machine: Machine): Promise<Outcome[]>;
  /**
   * Prepares the machine for observation after the agent was killed during `together`. The processes that it had
   * started have ended.
   */
  recover?(machine: Machine): Promise<void>;
  /**
   * Completes the record for removal of a resource whose batch finished it before the agent was killed, as far as that
   * is only known afterwards. If absent: the earlier record.
   */
  afterwards?(resource: Resource, before: Before, machine: Machine): Promise<Before>;
  /**
   * Whether the change was finished when the agent was killed, for changes that leave no other trace, such as a
   * restart. If absent: finished when `diff` finds nothing more to do.
   * @param brief journaled form of the observation before the change
   */
  wasApplied?(resource: Resource, brief: Json, seenNow: Seen, original: Difference): boolean;
}

export const nothing = (message?: string): Difference => ({
  action: 'none',
  changes: [],
  diff: null,
  ...(message === undefined ? {} : { message }),
});

/** Drift: the object exists but is declared absent. An apply might refuse to remove it. */
export const presenceDrift = (): Difference => ({
  action: 'remove',
  changes: [{ field: 'ensure', from: 'present', to: 'absent' }],
  diff: null,
});

/** Drift: an object of another type has this path. An apply would refuse to change it. */
export const typeDrift = (found: { type: string; kind?: string }, wanted: string): Difference => ({
  action: 'update',
  changes: [{ field: 'type', from: found.kind ?? found.type, to: wanted }],
  diff: null,
});
