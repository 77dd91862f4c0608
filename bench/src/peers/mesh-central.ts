import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../../e2e/hosts/base-root.ts';
import { endingWithStarter } from '../../../tools/suite/program.ts';
import { scratchDirectory } from '../run/scratch.ts';
import { serverFlags, type Usage, usageOf } from '../servers/server-process.ts';

export const meshCentralVersion = '1.1.55';

const run = promisify(execFile);
const isListening = /MeshCentral HTTPS server running/;
/** Long, because MeshCentral creates its certificates and signs Windows programs before it listens. */
const startLimitMs = 300_000;

/** A MeshCentral server on a free port on the loopback interface, with its own data. */
export class MeshCentralProcess {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  /** Starts a server that accepts agents without enrollment. Fetches MeshCentral from the npm registry if needed. */
  static async start(): Promise<MeshCentralProcess> {
    const program = await install();
    const port = await freePort();
    const data = scratchDirectory('mesh-central');
    const config = {
      settings: {
        ...{ cert: '127.0.0.1', port, exactPorts: true, portBind: '127.0.0.1', redirPort: 0, mpsPort: 0 },
        ...{ WANonly: true, selfUpdate: false },
      },
      domains: { '': { newAccounts: false, orphanAgentUser: 'admin' } },
    };
    writeFileSync(join(data, 'config.json'), JSON.stringify(config));
    const args = [program, '--datapath', data, '--filespath', join(data, 'files')];
    await run(process.execPath, [...args, '--createaccount', 'admin', '--pass', randomBytes(16).toString('base64url')]);
    await run(process.execPath, [...args, '--adminaccount', 'admin']);
    // With `--launch`, the server runs in this process instead of a child process, and exits when its input is closed.
    const child = spawn(
      ...endingWithStarter(process.execPath, [...serverFlags, ...args, '--launch', String(process.pid)]),
      {
        cwd: data,
        stdio: 'pipe',
      },
    );
    await untilListening(child);
    return new MeshCentralProcess(child, port);
  }

  get usage(): Usage {
    return usageOf(this.#child.pid!);
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** Installs MeshCentral into the cache. @returns its package's path */
async function install(): Promise<string> {
  const folder = join(cacheFolder(), `meshcentral-${meshCentralVersion}`);
  if (!existsSync(folder)) {
    const building = `${folder}.building`;
    rmSync(building, { recursive: true, force: true });
    const options = ['--omit=dev', '--no-audit', '--no-fund', '--prefix', building];
    await run('npm', ['install', ...options, `meshcentral@${meshCentralVersion}`]);
    renameSync(building, folder);
  }
  return join(folder, 'node_modules/meshcentral');
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function untilListening(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    const limit = setTimeout(() => reject(new Error(`MeshCentral is not listening: ${output}`)), startLimitMs);
    const read = (piece: Buffer) => {
      output += piece;
      if (!isListening.test(output)) return;
      clearTimeout(limit);
      output = '';
      resolve();
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.once('exit', (code) => reject(new Error(`MeshCentral exited with code ${code}: ${output}`)));
  });
}
