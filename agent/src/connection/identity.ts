import { join } from 'node:path';
import { idOfKey } from '@muster/protocol';
import { keyStatementLimits, keyStatementSchema } from '@muster/protocol/wire';
import {
  ensurePrivateDirectory,
  readPrivateFile,
  removePrivateFile,
  writePrivateFile,
} from '../../../lib/src/private-file.ts';
import { type AgentKey, hexOf, keyOfPem, newKeyPem } from './agent-key.ts';
import { type NextKey, nextKeyPath, readNextKey, type Statement } from './next-key.ts';

/** First protocol version in which an orchestrator accepts a new key. */
const keyChangeVersion = 4;
/** First protocol version in which an orchestrator accepts the statements of earlier key changes. */
const earlierStatementsVersion = 5;

/** A key for a hello, with the statements that prove its origin. */
export interface ShownKey {
  key: AgentKey;
  statement: Statement | null;
  /** The statements of earlier key changes, newest first. */
  earlier: readonly Statement[];
}

/** The identity of an agent and the key that proves it. */
export interface AgentIdentity {
  readonly nodeId: string;
  /**
   * The key for a hello to an orchestrator that speaks these versions; a new key takes precedence.
   * @param orchestratorKey hex
   * @throws Error when a new key exists but cannot be read
   */
  toShow(versions: readonly number[], orchestratorKey: string): ShownKey;
  /** The key in force, for a hello. */
  inForce(): ShownKey;
  /** Whether a new key is waiting. @throws Error when it cannot be read */
  hasNext(): boolean;
  /**
   * Records that the orchestrator has welcomed this agent under a key.
   * @param nodeId the agent's id at the orchestrator; undefined: not sent
   * @returns true when the key is a new one, which is now in force
   * @throws Error when it cannot be written to disk; the next hello then shows the key again
   */
  welcomed(shown: ShownKey, nodeId: string | undefined): boolean;
  /**
   * Records that the orchestrator refused a key with its statement. A new key is dropped.
   * @returns true when it was a new key
   */
  refused(shown: ShownKey): boolean;
  /**
   * Records that the orchestrator knows none of the former keys. Until this process ends, it gets the key in force
   * without statements. They stay on disk, because the orchestrator may be restored from a later backup.
   * @param orchestratorKey hex
   */
  unknownTo(orchestratorKey: string): void;
}

/** Record of key changes; valid while one of its keys is in force. */
interface History {
  node_id: string;
  /** Hex: the former key and its successor. */
  keys: string[];
  statement: Statement | null;
  /** Earlier statements, newest first. Absent: written by an earlier release. */
  earlier?: Statement[];
}

/**
 * The keys of a data directory. `agent.key` is the key in force, `agent.key.next` a waiting new key with the former
 * key's statement about it, and `agent-keys.json` the agent's id, once that no longer follows from the key. A new key
 * comes into force by replacing `agent.key` in one rename; until then both exist.
 */
export class AgentKeys implements AgentIdentity {
  readonly #dataDir: string;
  #nodeId: string;
  #current: AgentKey;
  #history: History | null;
  #unknownTo: string | null = null;

  constructor(dataDir: string, nodeId: string, current: AgentKey, history: History | null) {
    this.#dataDir = dataDir;
    this.#nodeId = nodeId;
    this.#current = current;
    this.#history = history;
  }

  get nodeId(): string {
    return this.#nodeId;
  }

  get current(): AgentKey {
    return this.#current;
  }

  /** The waiting key, if any. @throws Error when it cannot be read */
  next(): NextKey | null {
    const next = readNextKey(this.#dataDir);
    if (next === null || !isSame(next.key, this.#current)) return next;
    // The key is in force already; the agent was killed before it removed the file.
    this.#removeNext();
    return null;
  }

  hasNext(): boolean {
    return this.next() !== null;
  }

  toShow(versions: readonly number[], orchestratorKey: string): ShownKey {
    if (!versions.includes(keyChangeVersion)) return this.inForce();
    const next = this.next();
    // An orchestrator restored from a backup knows the key that was in force at the time of the backup.
    const before = this.#statements();
    const [statement = null, ...earlier] = next === null ? before : [next.statement, ...before];
    if (statement === null || (next === null && this.#unknownTo === orchestratorKey)) return this.inForce();
    return {
      key: next?.key ?? this.#current,
      statement,
      earlier: versions.includes(earlierStatementsVersion) ? earlier.slice(0, keyStatementLimits.mostEarlier) : [],
    };
  }

  inForce(): ShownKey {
    return { key: this.#current, statement: null, earlier: [] };
  }

  /** The statements of the key changes up to the key in force, newest first. */
  #statements(): Statement[] {
    if (this.#history === null) return [];
    const { keys, statement, earlier = [] } = this.#history;
    const key = hexOf(this.#current);
    if (statement === null) return [];
    if (keys.at(-1) === key) return [statement, ...earlier];
    // The agent was killed after it wrote the history and before it put the new key in force.
    return statement.former_key === key ? earlier : [];
  }

  welcomed({ key, statement }: ShownKey, nodeId: string | undefined): boolean {
    const isNew = !isSame(key, this.#current);
    const id = nodeId ?? this.#nodeId;
    if (isNew) {
      // Writes the id first: it is valid under both keys, so a kill in between is harmless.
      const earlier = this.#statements().slice(0, keyStatementLimits.mostEarlier);
      this.#remember({ node_id: id, keys: [hexOf(this.#current), hexOf(key)], statement, earlier });
      // Writes the key from memory, because the orchestrator now expects it, and the file may be missing.
      writePrivateFile(join(this.#dataDir, 'agent.key'), key.pem, 'replace');
      this.#current = key;
      this.#removeNext();
    } else if (id !== this.#nodeId) {
      // This is another orchestrator, for which the key is the first one.
      const { keys = [hexOf(key)], statement: kept = null, earlier = [] } = this.#history ?? {};
      this.#remember({ node_id: id, keys, statement: kept, earlier });
    }
    this.#nodeId = id;
    return isNew;
  }

  refused({ key }: ShownKey): boolean {
    if (isSame(key, this.#current)) return false;
    // Drops only this key, not a key that was created in the meantime.
    const next = this.next();
    if (next !== null && isSame(next.key, key)) this.#removeNext();
    return true;
  }

  unknownTo(orchestratorKey: string): void {
    this.#unknownTo = orchestratorKey;
  }

  #remember(history: History): void {
    writePrivateFile(historyPath(this.#dataDir), `${JSON.stringify(history)}\n`, 'replace');
    this.#history = history;
  }

  #removeNext(): void {
    removePrivateFile(nextKeyPath(this.#dataDir));
  }
}

/**
 * The identity of this data directory, created at the first call.
 * @throws LoosePermissionsError when other users can access the directory or the key
 */
export async function loadAgentIdentity(dataDir: string): Promise<AgentKeys> {
  ensurePrivateDirectory(dataDir);
  const path = join(dataDir, 'agent.key');
  let pem = readPrivateFile(path);
  if (pem === null) {
    pem = newKeyPem();
    writePrivateFile(path, pem, 'keep');
  }
  const current = keyOfPem(pem, path);
  const history = readHistory(dataDir);
  if (history?.keys.includes(hexOf(current)) === true) return new AgentKeys(dataDir, history.node_id, current, history);
  return new AgentKeys(dataDir, await idOfKey(current.publicKey), current, null);
}

const isSame = (a: AgentKey, b: AgentKey): boolean => a.publicKey.equals(b.publicKey);
const historyPath = (dataDir: string) => join(dataDir, 'agent-keys.json');

/** @returns null without a file, and for a damaged one: the orchestrator sends the agent's id again */
function readHistory(dataDir: string): History | null {
  const text = readPrivateFile(historyPath(dataDir));
  if (text === null) return null;
  try {
    const { node_id, keys, statement, earlier = [] } = JSON.parse(text) as History;
    if (!/^[0-9a-f]{32}$/.test(node_id) || !Array.isArray(keys) || !Array.isArray(earlier)) return null;
    const statements = [statement, ...earlier].map((each) => keyStatementSchema.safeParse(each).data ?? null);
    // Statements before an unreadable one do not connect to the key in force.
    const read = statements.slice(0, statements.concat(null).indexOf(null)) as Statement[];
    return { node_id, keys, statement: read[0] ?? null, earlier: read.slice(1) };
  } catch {
    return null;
  }
}
