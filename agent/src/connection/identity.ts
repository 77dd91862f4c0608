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

/** A key to present in a hello, with the statements that prove its origin. */
export interface ShownKey {
  key: AgentKey;
  statement: Statement | null;
  /** The statements of earlier key changes, newest first. */
  earlier: readonly Statement[];
}

export interface AgentIdentity {
  readonly nodeId: string;
  /**
   * Returns the key for a hello to an orchestrator that supports the given protocol versions. Prefers a new key.
   * @param orchestratorKey in hexadecimal
   * @throws Error if there is a new key but it cannot be read
   */
  toShow(versions: readonly number[], orchestratorKey: string): ShownKey;
  inForce(): ShownKey;
  /** Reports whether a new key is pending. @throws Error if the new key cannot be read */
  hasNext(): boolean;
  /**
   * Records that the orchestrator has welcomed this agent under a key.
   * @param nodeId the agent's ID at the orchestrator; undefined if the orchestrator did not send it
   * @returns true if the key is new, and is now the current key
   * @throws Error if the key cannot be written to disk; the next hello then presents it again
   */
  welcomed(shown: ShownKey, nodeId: string | undefined): boolean;
  /**
   * Records that the orchestrator refused a key with its statement, and drops the key if it is new.
   * @returns true if the key is new
   */
  refused(shown: ShownKey): boolean;
  /**
   * Records that the orchestrator has none of the previous keys. Until this process exits, that orchestrator receives
   * the current key without statements. The statements stay on disk, because the orchestrator may be restored from a
   * later backup.
   * @param orchestratorKey in hexadecimal
   */
  unknownTo(orchestratorKey: string): void;
}

/** Record of key changes. Valid while one of its keys is the current key. */
interface History {
  node_id: string;
  /** The previous key and its successor, in hexadecimal. */
  keys: string[];
  statement: Statement | null;
  /** Statements of earlier changes, newest first. Absent in files from earlier releases. */
  earlier?: Statement[];
}

/**
 * The keys in a data directory. `agent.key` is the current key. `agent.key.next` is a new key to present in the next
 * hello, with the previous key's statement about it. `agent-keys.json` contains the agent's ID if it cannot be derived
 * from the key. A single rename that replaces `agent.key` activates a new key; until then, both keys exist.
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

  /** Returns the pending new key; null if there is none. @throws Error if the key cannot be read */
  next(): NextKey | null {
    const next = readNextKey(this.#dataDir);
    if (next === null || !isSame(next.key, this.#current)) return next;
    // This key is already the current one. The agent was killed before it removed the file.
    this.#removeNext();
    return null;
  }

  hasNext(): boolean {
    return this.next() !== null;
  }

  toShow(versions: readonly number[], orchestratorKey: string): ShownKey {
    if (!versions.includes(keyChangeVersion)) return this.inForce();
    const next = this.next();
    // An orchestrator that was restored from a backup has only the key that was current at the time of the backup.
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

  /** Returns the statements for the key changes up to the current key, newest first. */
  #statements(): Statement[] {
    if (this.#history === null) return [];
    const { keys, statement, earlier = [] } = this.#history;
    const key = hexOf(this.#current);
    if (statement === null) return [];
    if (keys.at(-1) === key) return [statement, ...earlier];
    // The agent was killed after writing the history but before switching to the new key.
    return statement.former_key === key ? earlier : [];
  }

  welcomed({ key, statement }: ShownKey, nodeId: string | undefined): boolean {
    const isNew = !isSame(key, this.#current);
    const id = nodeId ?? this.#nodeId;
    if (isNew) {
      // Writes the ID first. It is valid under both keys, so the process may be killed between the two writes.
      const earlier = this.#statements().slice(0, keyStatementLimits.mostEarlier);
      this.#remember({ node_id: id, keys: [hexOf(this.#current), hexOf(key)], statement, earlier });
      // Writes the key from memory, because the orchestrator now expects the key and the file may be missing.
      writePrivateFile(join(this.#dataDir, 'agent.key'), key.pem, 'replace');
      this.#current = key;
      this.#removeNext();
    } else if (id !== this.#nodeId) {
      // The node ID differs if another orchestrator enrolled this key as an agent's first key.
      const { keys = [hexOf(key)], statement: kept = null, earlier = [] } = this.#history ?? {};
      this.#remember({ node_id: id, keys, statement: kept, earlier });
    }
    this.#nodeId = id;
    return isNew;
  }

  refused({ key }: ShownKey): boolean {
    if (isSame(key, this.#current)) return false;
    // Drops only the refused key, and not a key that was created since.
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
 * Returns the identity of this data directory, and creates it on the first call.
 * @throws LoosePermissionsError if other users can access the directory or the key
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

/**
 * Returns the history; null if the file is missing or damaged. In that case, the orchestrator sends the agent's ID
 * again.
 */
function readHistory(dataDir: string): History | null {
  const text = readPrivateFile(historyPath(dataDir));
  if (text === null) return null;
  try {
    const { node_id, keys, statement, earlier = [] } = JSON.parse(text) as History;
    if (!/^[0-9a-f]{32}$/.test(node_id) || !Array.isArray(keys) || !Array.isArray(earlier)) return null;
    const statements = [statement, ...earlier].map((each) => keyStatementSchema.safeParse(each).data ?? null);
    // The newest statement comes first. The chain from the current key ends at an unreadable statement.
    const read = statements.slice(0, statements.concat(null).indexOf(null)) as Statement[];
    return { node_id, keys, statement: read[0] ?? null, earlier: read.slice(1) };
  } catch {
    return null;
  }
}
