import { errorMessage } from '../../../lib/src/error-message.ts';
import { readAccounts } from '../host/accounts/accounts.ts';
import { syncDirectory } from '../host/files/atomic-write.ts';
import { PathWalk } from '../host/files/path-walk.ts';
import { isDirectory, type OperationRecord } from '../journal/state.ts';
import { accountDatabase } from '../resources/provider/account-database.ts';
import type { Database, Machine } from '../resources/provider/provider.ts';
import type { ExecutionContext } from './execution-context.ts';
import { ancestors, declaredPaths, keptPaths, managedPaths, ownersOf } from './plan/step-paths.ts';
import { desiredByKey, type Step } from './plan/steps.ts';
import { followsSecret, pathsWithSecrets, sensitiveFields } from './report/redact.ts';

/** The machine as the providers of one operation access it, with the data about it that is cached between steps. */
export class MachineView {
  readonly #operation: OperationRecord;
  readonly #context: ExecutionContext;
  readonly #id: string;
  readonly walk: PathWalk;
  accounts = readAccounts();
  readonly #unsyncedDirectories = new Set<string>();
  readonly #newDirectories = new Set<string>();
  /** Databases that this operation has read, by name. */
  readonly #databases = new Map<string, Promise<unknown>>();
  #resources: readonly Step['resource'][] = [];
  #desired: ReadonlyMap<string, Step['resource']> = new Map();
  /** Declared paths, and every directory above them. */
  #declared: ReadonlySet<string> = new Set();
  /** See {@link Machine.manages}; null until the first call. */
  #managed: ReadonlySet<string> | null = null;
  /** See {@link Machine.keeps}; null until the first call. */
  #kept: ReadonlySet<string> | null = null;
  /** See {@link Machine.mayContainSecret}; null until the first call. */
  #pathsWithSecrets: ReadonlySet<unknown> | null = null;

  constructor(operation: OperationRecord, context: ExecutionContext) {
    this.#operation = operation;
    this.#context = context;
    this.#id = operation.message.operation_id;
    this.walk = this.#newWalk();
  }

  /** The resources that the operation declares, by key. */
  get desired(): ReadonlyMap<string, Step['resource']> {
    return this.#desired;
  }

  setSteps(steps: readonly Step[]): void {
    this.#desired = desiredByKey(steps);
    this.#declared = declaredPaths(this.#desired.values());
    this.#resources = steps.map(({ resource }) => resource);
    this.#pathsWithSecrets = null;
  }

  machine(
    startedProcess: Machine['startedProcess'] = (process) => this.#context.observing(this.#id, process),
  ): Machine {
    const { journal, clock, limits } = this.#context;
    return {
      walk: this.walk,
      accounts: this.accounts,
      clock,
      limits,
      ownPaths: [journal.directory, process.execPath],
      copies: journal.copies,
      privateFiles: journal.privateFiles,
      useContent: (reference, action) => this.#context.contents.use(this.#id, reference, action),
      useDownload: (source, action) => this.#context.downloads.use(source, () => this.#operation.cancelled, action),
      readDownload: (url, limit) => this.#context.downloads.read(url, limit),
      environment: this.#context.environment,
      ourDirectories: journal.state.ourDirectories,
      freshDirectories: this.#operation.freshDirectories,
      declared: (path) => this.#declared.has(path),
      manages: (path) => {
        const earlier = () => [...journal.state.managed.values()].map(({ resource }) => resource);
        this.#managed ??= managedPaths([...this.#resources, ...earlier()]);
        return this.#managed.has(path);
      },
      keeps: (path) => {
        this.#kept ??= keptPaths([...this.#desired.values(), ...this.#others()]);
        return this.#kept.has(path);
      },
      ownersOf: (path) =>
        ownersOf(path, [...this.#resources, ...this.#others()]).map(({ type, key, identity }) => ({
          ...{ type, key, identity },
          stays: this.#desired.has(key) || !this.#resources.some((resource) => resource.key === key),
        })),
      declaredDirectory: (path) => {
        const resource = this.#desired.get(`path:${path}`);
        return resource !== undefined && isDirectory(resource);
      },
      changedDirectory: (path) => this.#unsyncedDirectories.add(path),
      database: (database) => this.#read(database),
      stale: (...databases) => this.stale(...databases),
      resourcesOf: (type) => this.#resources.filter((resource) => resource.type === type),
      isDesired: (key) => this.#desired.has(key),
      mayContainSecret: (path) => this.#withSecrets().has(path),
      followsSecret: (resource) => followsSecret(resource, this.#resources, journal.state.managed, this.#withSecrets()),
      startedProcess,
      stop: this.#context.stop,
      cancelled: () => this.#operation.cancelled,
      windowEnd: this.#operation.message.window_ends_at ?? null,
      warn: (message) => this.#context.warn({ operation_id: this.#id }, message),
      link: this.#context.link,
      printed: (resource, stream, piece) => {
        // Sensitive output is omitted completely, as in the final report.
        if (sensitiveFields(resource, journal.state.managed.get(resource.key) ?? null).length > 0) return;
        const { module, identity } = resource;
        this.#context.printed({ operation_id: this.#id, resource: `${module}/${identity}` }, stream, piece);
      },
    };
  }

  /** Returns the managed resources that are not part of the operation. */
  #others(): Step['resource'][] {
    const own = new Set(this.#resources.map(({ key }) => key));
    return [...this.#context.journal.state.managed].flatMap(([key, { resource }]) => (own.has(key) ? [] : [resource]));
  }

  /** Returns the files that may contain a secret. */
  #withSecrets(): ReadonlySet<unknown> {
    this.#pathsWithSecrets ??= pathsWithSecrets(this.#resources, this.#context.journal.state.managed.values());
    return this.#pathsWithSecrets;
  }

  #read<T>(database: Database<T>): Promise<T> {
    const known = this.#databases.get(database.name) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const reading = (async () => database.read(this.machine()))();
    this.#databases.set(database.name, reading);
    reading.catch(() => {
      if (this.#databases.get(database.name) === reading) this.#databases.delete(database.name);
    });
    return reading;
  }

  /**
   * Discards the cached data of the given databases, which may be stale. Without arguments, discards all cached data.
   */
  stale(...databases: readonly Database<unknown>[]): void {
    for (const { name } of databases) this.#databases.delete(name);
    if (databases.length === 0) this.#databases.clear();
    if (databases.length === 0 || databases.includes(accountDatabase)) this.accounts = readAccounts();
  }

  #newWalk(): PathWalk {
    return new PathWalk((path) => {
      this.#newDirectories.add(path);
      this.#unsyncedDirectories.add(path);
      this.#unsyncedDirectories.add(path.slice(0, path.lastIndexOf('/')));
    });
  }

  /** Returns the missing directories above this path, innermost first. */
  missingAbove(path: string): string[] {
    const missing: string[] = [];
    for (const directory of ancestors(path)) {
      const open = this.walk.open(directory, 'null');
      if (open !== null) {
        this.walk.release(open);
        break;
      }
      missing.push(directory);
    }
    return missing;
  }

  /** Returns the directories that were created since the last call and that the journal does not contain. */
  takeNewDirectories(): string[] {
    const taken = [...this.#newDirectories].filter((path) => !this.#operation.freshDirectories.has(path));
    this.#newDirectories.clear();
    return taken;
  }

  /**
   * Syncs the changed directories. Never throws: the owner of a directory may have replaced it, and the results must
   * still be reported. A failure only means that new names in the directory may not survive a power failure.
   */
  syncDirectories(): void {
    for (const path of this.#unsyncedDirectories) {
      try {
        const directory = this.walk.open(path, 'null');
        if (directory === null) continue;
        try {
          syncDirectory(directory);
        } finally {
          this.walk.release(directory);
        }
      } catch (error) {
        const reason = errorMessage(error);
        this.#context.warn({ operation_id: this.#id, path, error: reason }, 'failed to sync a directory');
      }
    }
    this.#unsyncedDirectories.clear();
  }
}
