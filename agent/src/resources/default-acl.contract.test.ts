import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import { afterAll, describe, expect, test } from 'vitest';
import { directory, file, line, operation } from '../converge/test/desired.ts';
import { useAgent } from '../converge/test/harness.ts';
import { cleanEnvironment } from '../host/clean-environment.ts';

/**
 * Users can set ACLs on their own files. Files that the agent writes for, or gives to, another owner must not keep
 * them.
 */

const h = useAgent();
const user = 41_000;
const other = 41_001;

const canTry = (() => {
  try {
    execFileSync('python3', ['-c', 'import os\nos.setxattr'], { stdio: 'ignore' });
    return process.geteuid?.() === 0;
  } catch {
    return false;
  }
})();

/** Runs each script that it reads from one FIFO, and writes the script's output to another. */
const pythonLoop = `
import contextlib, io, json, os, struct, sys
requests, answers = sys.argv[1:]
while True:
    with open(requests) as file: sys.argv = json.load(file)
    output = io.StringIO()
    error = None
    try:
        with contextlib.redirect_stdout(output): exec(sys.argv[0])
    except Exception as caught: error = repr(caught)
    with open(answers, 'w') as file: json.dump([error, output.getvalue()], file)
`;
const fifos = mkdtempSync(join(tmpdir(), 'muster-python-'));
const [requests, answers] = [`${fifos}/requests`, `${fifos}/answers`];
let interpreter: ChildProcess | undefined;
afterAll(() => {
  interpreter?.kill('SIGKILL');
  rmSync(fifos, { recursive: true });
});

/**
 * Runs Python, because Node.js has no API for extended attributes. All scripts share a process, because starting one
 * takes longer than a test.
 */
function python(code: string, ...args: string[]): string {
  if (interpreter === undefined) {
    execFileSync('mkfifo', [requests, answers]);
    interpreter = spawn('python3', ['-c', pythonLoop, requests, answers], { stdio: 'ignore' });
  }
  writeFileSync(requests, JSON.stringify([code, ...args]));
  const [error, output] = JSON.parse(readFileSync(answers, 'utf8')) as [string | null, string];
  if (error !== null) throw new Error(error);
  return output;
}

/** Sets an ACL with permissions for the owner, `name`, the group, the mask, and everyone else. */
function setAcl(
  kind: 'access' | 'default',
  path: string,
  [owner, named, group, mask, rest]: readonly number[],
  name = other,
): void {
  const entries = [
    [1, owner],
    [2, named, name],
    [4, group],
    [16, mask],
    [32, rest],
  ];
  const code = `entries = ${JSON.stringify(entries.map(([tag, bits, id]) => [tag, bits, id ?? 0xffffffff]))}
os.setxattr(sys.argv[1], 'system.posix_acl_${kind}', struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in entries))`;
  python(code, path);
}
const setDefaultAcl = (path: string, acl: readonly number[]): void => setAcl('default', path, acl);
/** Returns the names of the extended attributes that hold the ACLs of a file or directory. */
const aclsOf = (path: string): string[] =>
  JSON.parse(python('print(json.dumps([n for n in os.listxattr(sys.argv[1]) if "acl" in n]))', path));

const open = [7, 7, 7, 7, 7];
/** Creates the user's directory with this default ACL. */
function home(acl: readonly number[] | null = open): string {
  const path = `${h.root}/home`;
  mkdirSync(path);
  chownSync(path, user, user);
  if (acl !== null) setDefaultAcl(path, acl);
  return path;
}
const stateOf = (path: string): string => {
  const { uid, gid, mode } = statSync(path);
  return `${uid}:${gid} ${(mode & 0o7777).toString(8).padStart(4, '0')}`;
};
async function apply(...resources: ResolvedResource[]) {
  const { finished, results } = await h.agent.run(operation('apply', resources));
  expect(finished.status, results.map(({ message }) => message).join('\n')).toBe('succeeded');
  const again = await h.agent.run(operation('apply', resources));
  expect(again.results.filter(({ status }) => status !== 'unchanged')).toEqual([]);
}

describe.runIf(canTry)('the default ACL of a directory of a user', () => {
  test.each([
    ['all permissions', open],
    ['no permissions of the mask, which hides it from the mode of new files', [0, 7, 0, 0, 0]],
    ['no permissions of the owner', [0, 7, 7, 7, 7]],
  ])("does not let a file for root inherit a user's default ACL: %s", async (_, acl) => {
    const path = `${home(acl)}/secret`;
    await apply(file(path, { content: 'ours\n', owner: 'root', group: 'root', mode: '0660' }));
    expect([stateOf(path), aclsOf(path)]).toEqual(['0:0 0660', []]);
    expect(readdirSync(`${h.root}/home`)).toEqual(['secret']);
  });

  test('does not let files for other owners inherit a default ACL', async () => {
    const path = home();
    await apply(
      file(`${path}/third`, { content: 'theirs\n', owner: '41002', mode: '0640' }),
      file(`${path}/plain`, { content: 'ours\n' }),
    );
    expect([`${path}/third`, `${path}/plain`].map(aclsOf)).toEqual([[], []]);
    expect([`${path}/third`, `${path}/plain`].map(stateOf)).toEqual(['41002:0 0640', '0:0 0644']);
  });

  test('grants no access to a new file while `validate` checks it', async () => {
    const path = home();
    const seen = `${h.root}/seen`;
    const validate = `python3 -c 'import os,sys; open("${seen}","w").write(str([n for n in os.listxattr(sys.argv[1]) if "acl" in n]) + oct(os.stat(os.path.dirname(sys.argv[1])).st_mode & 0o7777))' %`;
    await apply(file(`${path}/checked`, { content: 'ours\n', mode: '0660', validate }));
    expect(readFileSync(seen, 'utf8')).toBe('[]0o700');
  });

  test("does not let root's directory or its files inherit a default ACL", async () => {
    const path = `${home()}/d`;
    await apply(directory(path, { mode: '0770' }), file(`${path}/f`, { content: 'ours\n', mode: '0660' }));
    expect([stateOf(path), aclsOf(path), aclsOf(`${path}/f`)]).toEqual(['0:0 0770', [], []]);
  });

  test('does not let files in new parent directories inherit a default ACL', async () => {
    const path = `${home()}/a/b/f`;
    await apply(file(path, { content: 'ours\n', mode: '0660' }));
    expect([stateOf(path), aclsOf(path)]).toEqual(['0:0 0660', []]);
  });

  test("lets a user's files inherit that user's default ACL", async () => {
    const path = home();
    writeFileSync(`${path}/config`, 'a\n');
    chownSync(`${path}/config`, user, user);
    await apply(
      file(`${path}/his`, { content: 'his\n', owner: String(user), mode: '0660' }),
      line(`${path}/config`, 'b'),
    );
    expect([aclsOf(`${path}/his`), aclsOf(`${path}/config`)]).toEqual([
      ['system.posix_acl_access'],
      ['system.posix_acl_access'],
    ]);
  });

  test("lets new files inherit a default ACL on root's directory", async () => {
    const path = `${h.root}/shared`;
    mkdirSync(path);
    setDefaultAcl(path, open);
    await apply(file(`${path}/f`, { content: 'ours\n', mode: '0660' }));
    expect(aclsOf(`${path}/f`)).toEqual(['system.posix_acl_access']);
  });

  test("adds no ACL from root's directory to a root-owned file when it replaces the content", async () => {
    const path = `${h.root}/shared`;
    mkdirSync(path);
    for (const name of ['f', 'config']) writeFileSync(`${path}/${name}`, 'a\n', { mode: 0o640 });
    setDefaultAcl(path, open);
    await apply(file(`${path}/f`, { content: 'ours\n' }), line(`${path}/config`, 'b'));
    expect([`${path}/f`, `${path}/config`].map(stateOf)).toEqual(['0:0 0640', '0:0 0640']);
    expect([`${path}/f`, `${path}/config`].map(aclsOf)).toEqual([[], []]);
    expect(readdirSync(path).sort()).toEqual(['config', 'f']);
  });

  test('accepts a default ACL that it cannot remove if everyone may read the file', async () => {
    const path = home();
    const environment = cleanEnvironment as { PATH: string };
    const { PATH } = environment;
    environment.PATH = '/nowhere';
    try {
      const declared = file(`${path}/plain`, { content: 'ours\n', mode: '0644' });
      await apply(declared);
      const { results } = await h.agent.run(
        operation('apply', [declared, file(`${path}/secret`, { content: 'x', mode: '0640' })]),
      );
      expect(results[1]).toMatchObject({
        status: 'failed',
        message: expect.stringMatching(/default ACL.*setfacl -k/s),
      });
      expect(readdirSync(path)).toEqual(['plain']);
    } finally {
      environment.PATH = PATH;
    }
  });

  test('sets the owner of a file regardless of a default ACL', async () => {
    const path = home();
    writeFileSync(`${path}/his`, 'his\n');
    chownSync(`${path}/his`, user, user);
    await apply(file(`${path}/his`, { content: 'ours\n' }), file(`${path}/new`, { content: 'ours\n' }));
    expect([stateOf(`${path}/his`), stateOf(`${path}/new`)]).toEqual([`${user}:${user} 0644`, '0:0 0644']);
  });

  test('removes the temporary file that a killed agent left', async () => {
    const path = home();
    const resource = file(`${path}/f`, { content: 'ours\n', mode: '0660' });
    await apply(resource);
    const { hash } = await import('node:crypto');
    const left = `${path}/.muster-${hash('sha256', 'f', 'hex').slice(0, 20)}.tmp`;
    mkdirSync(left, { mode: 0o700 });
    writeFileSync(`${left}/new`, 'half');
    chmodSync(`${path}/f`, 0o600);
    await apply(file(`${path}/f`, { content: 'other\n', mode: '0660' }));
    expect(readdirSync(path)).toEqual(['f']);
  });
});

describe.runIf(canTry)('an ACL of the former owner', () => {
  /** Sets ACLs that would preserve the previous owner's access. */
  const keep = (path: string, isDirectory: boolean): void => {
    setAcl('access', path, open, user);
    if (isDirectory) setAcl('default', path, open, user);
  };

  test("removes a user's ACLs from a directory when root becomes its owner", async () => {
    const path = home(null);
    keep(path, true);
    await apply(
      directory(path, { owner: 'root', group: 'root', mode: '0750' }),
      file(`${path}/secret`, { content: 'ours\n', mode: '0640' }),
    );
    expect([stateOf(path), aclsOf(path), aclsOf(`${path}/secret`)]).toEqual(['0:0 0750', [], []]);
  });

  test("removes a user's ACL from a file when its owner changes", async () => {
    const path = home(null);
    for (const name of ['tool', 'theirs']) {
      writeFileSync(`${path}/${name}`, 'his\n');
      chownSync(`${path}/${name}`, user, user);
      keep(`${path}/${name}`, false);
    }
    await apply(
      file(`${path}/tool`, { owner: 'root', group: 'root', mode: '0770' }),
      file(`${path}/theirs`, { owner: String(other) }),
    );
    expect([`${path}/tool`, `${path}/theirs`].map(stateOf)).toEqual(['0:0 0770', `${other}:${user} 0777`]);
    expect([`${path}/tool`, `${path}/theirs`].map(aclsOf)).toEqual([[], []]);
    expect(readFileSync(`${path}/tool`, 'utf8')).toBe('his\n');
  });

  test('keeps the ACLs on a directory whose owner does not change', async () => {
    const path = home(null);
    keep(path, true);
    await apply(directory(path, { mode: '0750' }));
    expect(aclsOf(path)).toEqual(['system.posix_acl_access', 'system.posix_acl_default']);
  });

  test('removes inherited ACLs from parent directories that are declared later', async () => {
    const path = home();
    setAcl('default', path, open, user);
    const below = file(`${path}/a/b/f`, { content: 'ours\n' });
    await apply(below);
    await apply(below, directory(`${path}/a`, { mode: '0770' }), directory(`${path}/a/b`, { mode: '0750' }));
    expect([`${path}/a`, `${path}/a/b`].map(stateOf)).toEqual(['0:0 0770', '0:0 0750']);
    expect([`${path}/a`, `${path}/a/b`].map(aclsOf)).toEqual([[], []]);
  });

  test('removes inherited ACLs from a parent directory declared in the same operation', async () => {
    const path = home();
    setAcl('default', path, open, user);
    const below = file(`${path}/a/f`, { content: 'ours\n' });
    await apply(below, directory(`${path}/a`, { mode: '0770' }, { depends_on: [below.key] }));
    expect([stateOf(`${path}/a`), aclsOf(`${path}/a`)]).toEqual(['0:0 0770', []]);
  });
});

describe.runIf(canTry)('the capabilities of a program', () => {
  const capabilities = (path: string): string[] =>
    JSON.parse(python('print(json.dumps([n for n in os.listxattr(sys.argv[1]) if "cap" in n]))', path));
  function program(uid: number): string {
    const path = `${h.root}/program`;
    writeFileSync(path, 'a program\n', { mode: 0o755 });
    chownSync(path, uid, uid);
    // Version 2, cap_net_raw, effective and permitted.
    python(
      "os.setxattr(sys.argv[1], 'security.capability', struct.pack('<IIIII', 0x02000001, 1 << 13, 0, 0, 0))",
      path,
    );
    expect(capabilities(path)).toEqual(['security.capability']);
    return path;
  }

  test('keeps capabilities if only the permissions change', async () => {
    const path = program(0);
    await apply(file(path, { owner: 'root', mode: '0750' }));
    expect([stateOf(path), capabilities(path)]).toEqual(['0:0 0750', ['security.capability']]);
  });

  test('removes capabilities if the owner or the content changes', async () => {
    const path = program(0);
    await apply(file(path, { owner: String(user) }));
    expect(capabilities(path)).toEqual([]);
    await apply();
    expect([stateOf(path), capabilities(path)]).toEqual(['0:0 0755', []]);
    rmSync(path);
    program(user);
    await apply(file(path, { content: 'ours\n' }));
    expect(capabilities(path)).toEqual([]);
  });
});
