import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type PoolName, type PoolPackage, packagePool } from './apt/pool.ts';
import { SigningKey } from './apt/signing-key.ts';
import type { Machine } from './machine.ts';
import type { TestHosts } from './test-hosts.ts';

const suite = 'stable';
const component = 'main';

/**
 * A signed apt repository, served on the bridge of the test hosts. By default, it offers nginx-light with its
 * dependencies, and the packages of `apt/packages.ts` in two versions each. `offer` changes the offered packages.
 */
export class AptRepository {
  readonly #pool: readonly PoolPackage[];
  readonly #key = new SigningKey('Test repository <tests@example.com>');
  readonly #files = new Map<string, Buffer>();
  readonly #paths = new Map<string, string>();
  readonly #address: string;
  readonly #server: Server;
  /** Paths of all requests, oldest first. */
  readonly requestedPaths: string[] = [];
  /** Whether the server leaves requests without a response. */
  stalled = false;

  private constructor(pool: readonly PoolPackage[], address: string) {
    this.#pool = pool;
    this.#address = address;
    this.#server = createServer((request, response) => this.#answer(request, response));
    this.offer();
  }

  /** Starts the repository with all packages. `use` adds it to a test host. */
  static async open(hosts: TestHosts, pool: PoolName = 'samples'): Promise<AptRepository> {
    const { address } = hosts.bridge;
    const repository = new AptRepository(await packagePool(hosts.base, pool), address);
    await new Promise<void>((resolve) => repository.#server.listen(0, address, resolve));
    repository.#server.unref();
    return repository;
  }

  /** URL of the repository, for the field `uris` of an apt source. */
  get url(): string {
    return `http://${this.#address}:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** ASCII-armored public key, for the field `signed_by` of an apt source. */
  get publicKey(): string {
    return this.#key.publicKey;
  }

  /**
   * Sets the offered packages; test hosts see them at their next `apt-get update`.
   * @param isOffered reports whether to offer a package; default: all packages
   */
  offer(isOffered: (offered: { name: string; version: string }) => boolean = () => true): void {
    const stanzas = this.#pool.filter(isOffered).map((entry) => {
      const content = readFileSync(entry.path);
      // Replaces the colon after an epoch, which some clients percent-encode.
      const filename = `pool/${entry.name}_${entry.version.replace(':', '.')}.deb`;
      this.#paths.set(`/${filename}`, entry.path);
      return `${entry.control}\nFilename: ${filename}\nSize: ${content.length}\nSHA256: ${sha256(content)}\n`;
    });
    const packages = Buffer.from(stanzas.join('\n'));
    const architecture = architectures[process.arch] ?? process.arch;
    const path = `${component}/binary-${architecture}/Packages`;
    const release = [
      `Origin: Tests\nLabel: Tests\nSuite: ${suite}\nCodename: ${suite}\nComponents: ${component}`,
      `Architectures: ${architecture}\nDate: ${new Date(Date.now() - 60_000).toUTCString()}`,
      `SHA256:\n ${sha256(packages)} ${packages.length} ${path}\n`,
    ].join('\n');
    this.#files.set(`/dists/${suite}/${path}`, packages);
    this.#files.set(`/dists/${suite}/InRelease`, Buffer.from(this.#key.clearSign(release)));
  }

  /** Adds the repository to the apt sources of a machine, and updates the package lists. */
  async use(machine: Machine): Promise<void> {
    const source = `deb [signed-by=/usr/share/keyrings/tests.asc] ${this.url} ${suite} ${component}\n`;
    const write = [
      'cat > /usr/share/keyrings/tests.asc; echo "$0" > /etc/apt/sources.list',
      // Skips fsync, which may be slow. No test with this repository cuts the power.
      'echo force-unsafe-io > /etc/dpkg/dpkg.cfg.d/tests; apt-get update -qq',
    ].join('\n');
    const { code, stderr } = await machine.run(['sh', '-euc', write, source.trim()], { input: this.publicKey });
    if (code !== 0 || stderr !== '') throw new Error(`apt-get update failed on ${machine.name}: ${stderr}`);
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url ?? '');
    this.requestedPaths.push(path);
    if (this.stalled) return;
    const file = this.#paths.get(path);
    const content = file === undefined ? this.#files.get(path) : readFileSync(file);
    response.writeHead(content === undefined ? 404 : 200, { 'content-length': content?.length ?? 0 });
    response.end(content);
  }
}

const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** Debian's architecture names by Node's names, where they differ. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64' };
