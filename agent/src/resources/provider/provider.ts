import type { FieldChange, ResourceAction } from '@muster/protocol';
import type { ResolvedResource, ResourceType } from '@muster/protocol/module';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import type { Accounts } from '../../host/accounts/accounts.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import type { Link } from '../../host/firewall/trial.ts';
import type { CommandResult } from '../../host/processes/run-command.ts';

/** A JSON value, which the journal can store. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A provider's access to the machine, and the callbacks through which it reports to the engine. */
export interface Machine {
  walk: PathWalk;
  accounts: Accounts;
  clock: Clock;
  /** The real paths of the agent's program and state directory, which no resource may remove. */
  ownPaths: readonly string[];
  /** Stores file contents before they are replaced, so that removal can restore them. */
  copies: ContentCopies;
  privateFiles: PrivateFiles;
  /**
   * Runs an action with content from the module's files. If the agent lacks the content, fetches it first, and waits
   * for a link to the orchestrator if necessary.
   * @throws HostFailure if the content cannot be fetched; another error if the agent stops
   */
  useContent<T>(reference: CopyReference, action: (content: StoredContent) => Promise<T>): Promise<T>;
  /**
   * Runs an action with content from a server. If the agent lacks the content, downloads it first.
   * @throws HostFailure if the content cannot be downloaded; another error if the agent stops
   */
  useDownload<T>(source: DownloadSource, action: (content: StoredContent & { size: number }) => Promise<T>): Promise<T>;
  /** Downloads a small file into memory. @throws HostFailure if the content exceeds `limit` bytes */
  readDownload(url: string, limit: number): Promise<Buffer>;
  /** The agent's environment variables. Only the proxy variables are used. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Directories that the agent created as parents of declared paths. They are removed once they are empty. */
  ourDirectories: ReadonlySet<string>;
  /**
   * The directories in `ourDirectories` that this operation created. A resource that declares such a directory counts
   * as its creator.
   */
  freshDirectories: ReadonlySet<string>;
  /** Reports whether this operation declares this path or a path below it, which must then not be removed. */
  declared(path: string): boolean;
  /**
   * Reports whether a resource has a file at this path or below it. Includes resources that this operation removes, and
   * managed resources that are not part of it, because their module is audited or waits for a maintenance window.
   */
  manages(path: string): boolean;
  /**
   * Reports whether a resource has its file or directory at exactly this path after the operation. Includes managed
   * resources that are not part of it.
   */
  keeps(path: string): boolean;
  /** Returns the resources that have their file at exactly this path. Includes those that this operation removes. */
  ownersOf(path: string): readonly FileOwner[];
  /** Reports whether a resource of this operation declares the directory at this path itself. */
  declaredDirectory(path: string): boolean;
  /** Records that names in this directory changed. The engine syncs the directory before it reports the result. */
  changedDirectory(path: string): void;
  /**
   * Returns data that is read once for many resources. The data is read on first use in an operation and cached until
   * it is stale. Concurrent callers share one read. The next caller retries a failed read.
   */
  database<T>(database: Database<T>): Promise<T>;
  /**
   * Discards data that a change may have made outdated. Without arguments, discards all data and `accounts`. Discarding
   * the database of accounts also discards `accounts`.
   */
  stale(...databases: readonly Database<unknown>[]): void;
  /**
   * Returns every resource of this type in the operation, including those to remove, so that one read can serve all.
   */
  resourcesOf(type: ResourceType): readonly ResolvedResource[];
  /** Reports whether this operation declares the resource with this key, and does not remove it. */
  isDesired(key: string): boolean;
  /**
   * Reports whether a resource writes, or wrote, a secret to the file. In that case, a program that reads the file may
   * print the secret.
   */
  mayContainSecret(path: string): boolean;
  /** Reports whether a resource that triggers this one may contain a secret. */
  followsSecret(resource: ResolvedResource): boolean;
  /**
   * Records a process that may outlive the agent.
   * @param fate `killed` when the agent stops, or `left` running, such as a package transaction
   */
  startedProcess(process: ProcessIdentity, fate?: 'killed' | 'left'): void;
  /**
   * Aborted when the agent stops, so that nothing waits for processes that are left running. If a provider throws the
   * signal's reason, the operation continues at the next start.
   */
  stop: AbortSignal;
  /** Reports whether the operation was canceled. A canceled operation no longer waits for locks. */
  cancelled(): boolean;
  /** When the maintenance window of this agent closes, in Unix seconds; null if none was open at the dispatch. */
  windowEnd: number | null;
  warn(message: string): void;
  /** The agent's link to its orchestrator; null if it has none. */
  link: Link | null;
  /**
   * Streams the output of a program that changes the machine for this resource to live viewers, unless the output is
   * sensitive.
   */
  printed(resource: ResolvedResource, stream: 'stdout' | 'stderr', piece: Buffer): void;
  limits: ProviderLimits;
}

/** A resource that has a file. */
interface FileOwner {
  type: ResourceType;
  key: string;
  identity: string;
  /** Whether the resource exists after the operation. */
  stays: boolean;
}

/** Files in the agent's data directory that only the agent can read (mode 0600), such as keys. */
export interface PrivateFiles {
  /** Returns null if there is no file with this name. */
  read(name: string): string | null;
  /** Replaces the file. It is on disk when the call returns. */
  write(name: string, text: string): void;
  remove(name: string): void;
}

/** Data about the machine that is read as a whole, such as the list of installed packages. */
export interface Database<T> {
  /** Unique among all databases. */
  readonly name: string;
  /** Reads the data. Must not change the machine. */
  read(machine: Machine): T | Promise<T>;
}

/** Effects of a change that other resources may have to wait for. */
export type Brought = 'accounts' | 'units' | 'programs' | 'packages' | 'databases' | 'servers';

export interface ProviderLimits {
  /** Time limit in milliseconds for a script's `apply` and `undo`. */
  scriptMs: number;
  /** Time limit in milliseconds for a script's `check`, and for `validate`. */
  checkMs: number;
  /** Maximum number of bytes to keep from each of a script's output streams. */
  outputBytes: number;
  /** Time limit in milliseconds for one package transaction, and for refreshing the package lists. */
  packageMs: number;
  /** Milliseconds that a package transaction waits for a lock held by another transaction. */
  packageLockMs: number;
}

export interface ContentCopies {
  /** Stores content under its hash. Resolves once the content is on disk. */
  keep(content: Buffer | { openFd: number }): Promise<CopyReference>;
  /** Returns the path of stored content. */
  pathOf(reference: CopyReference): string;
  /** Returns stored content, or null if it is larger than `limit` bytes. */
  read(reference: CopyReference, limit: number): Buffer | null;
}

/** Content in the agent's data directory. */
export interface StoredContent {
  readonly path: string;
  /** Reads all of it into memory. */
  read(): Promise<Buffer>;
  /** Returns another path of the same file, for programs that require a suffix. */
  named(suffix: NameSuffix): string;
}

export type NameSuffix = '.deb' | '.rpm';

/** The URL and the SHA-256 of content to download. */
export interface DownloadSource {
  url: string;
  /** SHA-256 in lower-case hexadecimal. */
  sha256: string;
}

export interface CopyReference {
  sha256: string;
  size: number;
}

/** State of the operation that a provider's decision depends on. */
export interface Circumstances {
  purpose: 'apply' | 'plan' | 'drift';
  /** IDs of changed resources that require this resource to run, reload, or restart. */
  rerunBy: readonly string[];
  reloadBy: readonly string[];
  restartBy: readonly string[];
  /** The declaration that was last applied successfully on this machine, or null if there is none. */
  succeeded: ResolvedResource | null;
  /** Reports whether the object at this path will be removed before this resource is applied. */
  willBeRemoved(path: string): boolean;
  /** Reports whether a missing object at this path will be created before this resource is applied. */
  willBeThere(path: string): boolean;
  /** Reports whether a path below this directory will be created before this resource is applied. */
  willContain(directory: string): boolean;
  /** Reports whether an earlier step of a plan will change the file at this path. */
  willChange(path: string): boolean;
}

/** The decision about one resource. `action` may require work even if `changes` is empty. */
export interface Difference {
  action: ResourceAction;
  changes: FieldChange[];
  /** Unified diff of the content. */
  diff: string | null;
  /**
   * Missing prerequisites, such as a user, each with a message for operators. An earlier resource may create them. A
   * plan assumes that it does, and an apply observes again when it reaches this resource.
   */
  awaits?: { kind: Brought; message: string }[];
  message?: string;
  /** Why the change must wait. The resource is skipped, and triggers stay due. */
  waits?: string;
  /** Path of a directory that the agent created and keeps only because it is not empty. */
  stillOurs?: string;
}

export interface Outcome {
  failure?: string;
  /** Last output, appended to `failure`. Omitted if it may contain a current or former secret. */
  words?: string;
  message?: string;
  /** The record for removal, if it contains more than the earlier record. Only `together` sets it. */
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
 * `observe` does not change the machine. `diff` and `diffRemoval` decide and have no side effects. Plan and apply use
 * the same functions, so that they agree. Every failure is a HostFailure.
 *
 * `defineProvider` creates a provider, with defaults.
 *
 * @typeParam Seen result of `observe`, as plain data; `inBrief` turns it into the journaled form
 */
export interface Provider<
  Seen = unknown,
  Before extends Json = Json,
  Resource extends ResolvedResource = ResolvedResource,
> {
  readonly type: ResourceType;
  /** The fields that the provider reads, with the shape of each value, such as `text` or `list?`. */
  readonly fields: Readonly<Record<string, string>>;
  /**
   * Whether observing again reveals what a killed agent had done. Such resources are journaled in groups, and all
   * resources of a group are observed before the first one changes. Others are journaled one by one, before and after.
   */
  readonly recheckable: boolean;
  /** Returns the effects of a change that any other resource may wait for. */
  brings(resource: Resource): readonly Brought[];
  /** Returns additional effects that only dependents of the resource may wait for. */
  bringsToDependents?(resource: Resource): readonly Brought[];
  /**
   * Returns paths besides `path` that a change creates, such as a new home directory. Resources that are declared at or
   * below them are observed again afterwards.
   */
  makes?(resource: Resource, seen: Seen): readonly string[];
  /** Returns the path that the resource owns. Two such paths may be nested only if the outer one is a directory. */
  path(resource: Resource): string | null;
  /**
   * Returns paths whose change triggers a drift check immediately. A path that ends in `/` covers everything in that
   * directory. The default is `path`. Empty if only an observation can find drift.
   */
  watched?(resource: Resource): readonly string[];
  /**
   * Returns paths of other files that affect the decision about the resource. The resource is observed only after
   * earlier resources have changed these files. `/` stands for any file, so that the resource is observed after all
   * earlier resources.
   */
  reads?(resource: Resource): readonly string[];
  /** Refuses a body that cannot be applied, without observing the machine. */
  check(resource: Resource): void;
  observe(resource: Resource, circumstances: Circumstances, machine: Machine): Seen | Promise<Seen>;
  diff(resource: Resource, seen: Seen, circumstances: Circumstances): Difference;
  /** Returns the journaled form of `seen`, which suffices for `diff` to return the same action and fields. */
  inBrief(seen: Seen): Json;
  /**
   * Reports whether `observe` can detect that an interrupted execution finished, although the type is not recheckable.
   */
  revealsCompletion(resource: Resource): boolean;
  /** Returns how much memory `seen` occupies, in bytes. */
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
  /**
   * Records the current state, which is restored if a confirmed service fails after the change. Without this method,
   * `remember` records that state, and must not record an object that the agent created as absent.
   */
  rememberForTrial?(resource: Resource, seen: Seen): Before;
  /** Returns the record to store when nothing changes, if the agent already owns the object. */
  claim(resource: Resource, machine: Machine): Before | null;
  apply(resource: Resource, seen: Seen, difference: Difference, machine: Machine): Promise<Outcome>;
  observeForRemoval(resource: Resource, before: Before, machine: Machine): Seen | Promise<Seen>;
  /**
   * Decides how to remove an object. Not called for an object that was as declared before the agent managed it; such an
   * object is kept.
   */
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
   * the engine does not call its `apply` and `remove`, which `defineProvider` derives from this method. Returns one
   * outcome for each, in order. A HostFailure fails all of them.
   */
  together?(items: readonly Item<Seen, Before>[], machine: Machine): Promise<Outcome[]>;
  /**
   * Reports whether the resource is checked after a trigger restarted or reloaded it. If the check fails, the engine
   * restores the triggering resource, if that is recheckable.
   */
  confirms?(resource: Resource): boolean;
  /** Reports whether the service runs. */
  runs?(seen: Seen): boolean;
  /**
   * Prepares the machine for observation after the agent was killed during `together`. The processes that it had
   * started have exited.
   */
  recover?(machine: Machine): Promise<void>;
  /**
   * Completes the record for removal after a change, with what only the change reveals, such as the dependencies of a new
   * version. Called after each change of a recheckable type, even if it failed or the agent was killed. `together` returns
   * the record itself, so for types with it, this is called only if the agent was killed before it recorded the result.
   * Without this method, the earlier record stays.
   */
  afterwards?(resource: Resource, before: Before, machine: Machine): Promise<Before>;
  /**
   * Reports whether the change was finished when the agent was killed, for changes that leave no other trace, such as a
   * restart. Without this method, a change is finished if `diff` finds nothing more to do. An unfinished change
   * is repeated.
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

type Prerequisite = NonNullable<Difference['awaits']>[number];

/**
 * Returns the difference with these changes; no difference, with the message, if there are none.
 * @param more.awaits the missing prerequisites; a null represents one that is not missing
 */
export function withChanges(
  action: ResourceAction,
  changes: FieldChange[],
  more: { awaits?: readonly (Prerequisite | null)[]; message?: string | null | undefined } = {},
): Difference {
  const message = more.message ?? undefined;
  if (changes.length === 0) return nothing(message);
  const awaits = more.awaits?.filter((one) => one !== null) ?? [];
  return {
    ...{ action, changes, diff: null },
    ...(awaits.length === 0 ? {} : { awaits }),
    ...(message === undefined ? {} : { message }),
  };
}

/** Returns the difference of a removal that restores the original state with these changes. */
export const restoring = (changes: FieldChange[], message?: string | null): Difference =>
  changes.length === 0
    ? nothing(message ?? 'already in its original state')
    : { action: 'remove', changes, diff: null, message: message ?? 'restores the original state' };

/** Returns the names of the fields that change. */
export const changedFields = ({ changes }: Pick<Difference, 'changes'>): Set<string> =>
  new Set(changes.map(({ field }) => field));

/** Returns the drift of an object that exists but is declared absent. An apply might refuse to remove it. */
export const presenceDrift = (): Difference => ({
  action: 'remove',
  changes: [{ field: 'ensure', from: 'present', to: 'absent' }],
  diff: null,
});

/** Returns the drift of a path with an object of a different type. An apply would refuse to change it. */
export const typeDrift = (found: { type: string; kind?: string }, declaredType: string): Difference => ({
  action: 'update',
  changes: [{ field: 'type', from: found.kind ?? found.type, to: declaredType }],
  diff: null,
});
