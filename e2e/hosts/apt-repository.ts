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
 * A signed apt repository on the bridge. The default pool is nginx-light with its dependencies, and the packages of
 * `apt/packages.ts` in two versions each. `offer` changes the offered packages at any time.
 */
export class AptRepository {
  readonly #pool: readonly PoolPackage[];
  readonly #key = new SigningKey('Test repository <tests@example.com>');
  readonly #files = new Map<string, Buffer>();
  readonly #paths = new Map<string, string>();
  readonly #address: string;
  readonly #server: Server;
  /** The path of every request, oldest first. */
  readonly asked: string[] = [];
  /** While true, requests get no answer. */
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

  /** The `uris` of a source. */
  get url(): string {
    return `http://${this.#address}:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** The public key, ASCII-armored, for `signed_by`. */
  get publicKey(): string {
    return this.#key.publicKey;
  }

  /**
   * Sets the offered packages; test hosts see them at their next `apt-get update`.
   * @param wanted selects packages, such as one version of a package; default: all packages
   */
  offer(wanted: (offered: { name: string; version: string }) => boolean = () => true): void {
    const stanzas = this.#pool.filter(wanted).map((entry) => {
      const content = readFileSync(entry.path);
      // Some clients would quote the colon of an epoch.
      const place = `pool/${entry.name}_${entry.version.replace(':', '.')}.deb`;
      this.#paths.set(`/${place}`, entry.path);
      return `${entry.control}\nFilename: ${place}\nSize: ${content.length}\nSHA256: ${sha256(content)}\n`;
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
      // These tests include no power cut, and a disk may be slow.
      'echo force-unsafe-io > /etc/dpkg/dpkg.cfg.d/tests; apt-get update -qq',
    ].join('\n');
    const { code, stderr } = await machine.run(['sh', '-euc', write, source.trim()], { input: this.publicKey });
    if (code !== 0 || stderr !== '') throw new Error(`${machine.name} cannot use the repository: ${stderr}`);
  }

  async end(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(request.url ?? '');
    this.asked.push(path);
    if (this.stalled) return;
    const file = this.#paths.get(path);
    const content = file === undefined ? this.#files.get(path) : readFileSync(file);
    response.writeHead(content === undefined ? 404 : 200, { 'content-length': content?.length ?? 0 });
    response.end(content);
  }
}

const sha256 = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** Debian's architecture names by Node's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64' };
