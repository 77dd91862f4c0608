import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ResolvedResource } from '@muster/protocol/module';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isSampling, sampled } from '../../../../lib/test/sampled.ts';
import { removeDirectory, temporaryDirectory } from '../../converge/test/agent.ts';
import { ContentServer } from '../../converge/test/content-server.ts';
import { type ContractAgent, contractAgent } from '../../converge/test/contract-agent.ts';
import {
  block,
  certificate,
  directory,
  download,
  file,
  ini,
  line,
  operation,
  script,
  sourced,
  structured,
  unpacked,
  workingCopy,
} from '../../converge/test/desired.ts';
import { madeArchive } from '../../converge/test/made-archive.ts';
import { madeCertificate } from '../../converge/test/made-certificates.ts';
import { madeRepository } from '../../converge/test/made-repository.ts';
import { planAndApplyOn, providerContract } from '../../converge/test/provider-contract.ts';
import { snapshotTree } from '../../converge/test/tree.ts';

/**
 * A kind that manages files, tested in its own directory. Kinds that manage the machine have their subjects in
 * `e2e/hosts/subjects`.
 */
interface Subject {
  name: string;
  /** Creates the state before the first apply. */
  prepare(root: string): void;
  desired(root: string): ResolvedResource;
  /** Returns the same resource with another declaration. */
  changed(root: string): ResolvedResource;
  /** Changes the object by hand. */
  tamper(root: string): void;
  /** Exactly the fields that a drift check must then report. */
  moved: string[];
  /** Paths that are excluded from all comparisons. */
  ignored?: RegExp;
}

const owner = process.geteuid?.() === 0 ? { owner: 'nobody', group: 'daemon' } : {};

const server = await ContentServer.open();
afterAll(() => server.close());
const served = {
  one: server.serve('/one', 'one\n'),
  two: server.serve('/two', Buffer.alloc(5 * 1024 * 1024, 'two\n')),
};

const releaseOf = (version: string): Buffer =>
  madeArchive(
    `mkdir -p app/bin app/doc; echo ${version} > app/bin/run; chmod 755 app/bin/run; echo > app/doc/x; ln -s bin/run app/link`,
  );
const [first, second] = [releaseOf('1'), releaseOf('2')];

const gitFolder = temporaryDirectory();
afterAll(() => removeDirectory(gitFolder));
const repository = madeRepository(gitFolder);

const now = Date.now();
const authority = await madeCertificate('Authority', null, null);
const [shop, api] = [
  await madeCertificate('shop', authority, ['shop.example.org'], 90, now),
  await madeCertificate('api', authority, ['api.example.org'], 90, now),
];
const placed = (of: typeof shop) => ({ certificate: of.pem + authority.pem, key: of.key });

const subjects: Subject[] = [
  {
    name: 'file-unix, created',
    prepare: () => {},
    desired: (root) => file(`${root}/new/deep/f`, { content: 'one\ntwo\n', mode: '0640', ...owner }),
    changed: (root) => file(`${root}/new/deep/f`, { content: 'one\n2\n', mode: '0600' }),
    tamper: (root) => chmodSync(`${root}/new/deep/f`, 0o644),
    moved: ['mode'],
  },
  {
    name: 'file-unix, taken over',
    prepare(root) {
      writeFileSync(`${root}/f`, 'before\n');
      chmodSync(`${root}/f`, 0o604);
    },
    desired: (root) => file(`${root}/f`, { content: 'ours\n', mode: '0640', ...owner }),
    changed: (root) => file(`${root}/f`, { content_base64: 'AAE=' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'by hand\n'),
    moved: ['content'],
  },
  {
    name: 'file-unix, from a file of the module',
    prepare: (root) => writeFileSync(`${root}/f`, 'before\n', { mode: 0o640 }),
    desired: (root) => sourced(`${root}/f`, 'one\ntwo\n', { mode: '0600', ...owner }),
    changed: (root) => sourced(`${root}/f`, Buffer.alloc(5 * 1024 * 1024, 'x'), { mode: '0644' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'by hand\n'),
    moved: ['content'],
  },
  {
    name: 'file-unix, a copy of a small file, then of a large one',
    prepare(root) {
      writeFileSync(`${root}/f`, 'before\n', { mode: 0o640 });
      writeFileSync(`${root}/small`, 'one\n');
      writeFileSync(`${root}/large`, Buffer.alloc(5 * 1024 * 1024, 'two\n'));
    },
    desired: (root) => file(`${root}/f`, { copy_of: `${root}/small`, mode: '0600', ...owner }),
    changed: (root) => file(`${root}/f`, { copy_of: `${root}/large` }),
    tamper: (root) => writeFileSync(`${root}/f`, 'two\n'),
    moved: ['content'],
  },
  {
    name: 'file-unix, a copy of a large file, in a new directory',
    prepare: (root) => writeFileSync(`${root}/large`, Buffer.alloc(5 * 1024 * 1024, 'two\n')),
    desired: (root) => file(`${root}/new/f`, { copy_of: `${root}/large` }),
    changed: (root) => file(`${root}/new/f`, { content: 'x', mode: '0600' }),
    tamper: (root) => writeFileSync(`${root}/new/f`, Buffer.alloc(5 * 1024 * 1024, 'one\n')),
    moved: ['content'],
  },
  {
    name: 'file-unix, whose content is written once',
    prepare: () => {},
    desired: (root) => file(`${root}/f`, { content: 'first\n', if_exists: 'keep', mode: '0600' }),
    changed: (root) => file(`${root}/f`, { content: 'second\n', if_exists: 'keep', mode: '0644' }),
    tamper: (root) => chmodSync(`${root}/f`, 0o640),
    moved: ['mode'],
  },
  {
    name: 'file-unix, created from an empty file of the module',
    prepare: () => {},
    desired: (root) => sourced(`${root}/new/f`, ''),
    changed: (root) => sourced(`${root}/new/f`, 'more'),
    tamper: (root) => writeFileSync(`${root}/new/f`, 'by hand\n'),
    moved: ['content'],
  },
  {
    name: 'file-unix, only its permissions',
    prepare: (root) => writeFileSync(`${root}/f`, 'theirs\n'),
    desired: (root) => file(`${root}/f`, { mode: '0600' }),
    changed: (root) => file(`${root}/f`, { mode: '4755' }),
    tamper: (root) => chmodSync(`${root}/f`, 0o666),
    moved: ['mode'],
  },
  {
    name: 'file-unix, a symbolic link where a file was',
    prepare: (root) => writeFileSync(`${root}/f`, 'before\n'),
    desired: (root) => file(`${root}/f`, { symlink: '/etc/hostname' }),
    changed: (root) => file(`${root}/f`, { symlink: 'elsewhere' }),
    tamper(root) {
      rmSync(`${root}/f`);
      symlinkSync('by-hand', `${root}/f`);
    },
    moved: ['symlink'],
  },
  {
    name: 'file-unix, a file where a symbolic link was',
    prepare: (root) => symlinkSync('/nowhere', `${root}/f`),
    desired: (root) => file(`${root}/f`, { content: 'x', mode: '0644' }),
    changed: (root) => file(`${root}/f`, { content: 'y', mode: '0600' }),
    tamper: (root) => chmodSync(`${root}/f`, 0o600),
    moved: ['mode'],
  },
  {
    name: 'file-unix, absent',
    prepare: (root) => writeFileSync(`${root}/f`, 'before\n', { mode: 0o640 }),
    desired: (root) => file(`${root}/f`, { ensure: 'absent' }),
    changed: (root) => file(`${root}/f`, { content: 'back\n' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'by hand\n'),
    moved: ['ensure'],
  },
  {
    name: 'download, created',
    prepare: () => {},
    desired: (root) => download(`${root}/new/f`, { ...served.one, mode: '0755', ...owner }),
    changed: (root) => download(`${root}/new/f`, { ...served.two, mode: '0700' }),
    tamper: (root) => chmodSync(`${root}/new/f`, 0o777),
    moved: ['mode'],
  },
  {
    name: 'download, taken over',
    prepare: (root) => writeFileSync(`${root}/f`, 'before\n', { mode: 0o640 }),
    desired: (root) => download(`${root}/f`, served.two),
    changed: (root) => download(`${root}/f`, { ...served.one, ensure: 'absent' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'by hand\n'),
    moved: ['content'],
  },
  {
    name: 'certificate-file, created',
    prepare: () => {},
    desired: (root) =>
      certificate(`${root}/new/c.pem`, { key_path: `${root}/new/c.key`, ...placed(shop), key_mode: '0640', ...owner }),
    changed: (root) => certificate(`${root}/new/c.pem`, { key_path: `${root}/new/c.key`, ...placed(api) }),
    tamper: (root) => chmodSync(`${root}/new/c.key`, 0o644),
    moved: ['key_mode'],
  },
  {
    name: 'certificate-file, in place of files of others, absent in between',
    prepare(root) {
      writeFileSync(`${root}/c.pem`, api.pem, { mode: 0o604 });
      writeFileSync(`${root}/c.key`, api.key, { mode: 0o400 });
    },
    desired: (root) => certificate(`${root}/c.pem`, { key_path: `${root}/c.key`, ...placed(shop) }),
    changed: (root) => certificate(`${root}/c.pem`, { key_path: `${root}/c.key`, ...placed(shop), ensure: 'absent' }),
    tamper: (root) => writeFileSync(`${root}/c.pem`, api.pem),
    moved: ['fingerprint', 'domains'],
  },
  {
    name: 'archive, created',
    prepare: () => {},
    desired: (root) => unpacked(`${root}/new/app`, first, { strip: 1, exclude: ['doc'], ...owner }),
    changed: (root) => unpacked(`${root}/new/app`, second),
    tamper: (root) => chmodSync(`${root}/new/app/bin/run`, 0o600),
    moved: ['content'],
  },
  {
    name: 'archive, in place of a directory of others',
    prepare(root) {
      mkdirSync(`${root}/app`, { mode: 0o711 });
      writeFileSync(`${root}/app/theirs`, 'theirs\n', { mode: 0o604 });
    },
    desired: (root) => unpacked(`${root}/app`, first),
    changed: (root) => unpacked(`${root}/app`, first, { ensure: 'absent' }),
    tamper: (root) => rmSync(`${root}/app/app/bin/run`),
    moved: ['content'],
  },
  {
    name: 'archive, in releases next to one of others',
    prepare(root) {
      mkdirSync(`${root}/app/releases/theirs`, { recursive: true });
      symlinkSync('releases/theirs', `${root}/app/current`);
    },
    desired: (root) => unpacked(`${root}/app`, first, { strip: 1, keep: 2 }),
    changed: (root) => unpacked(`${root}/app`, second, { strip: 1, keep: 2 }),
    tamper(root) {
      rmSync(`${root}/app/current`);
      symlinkSync('releases/theirs', `${root}/app/current`);
    },
    moved: ['release'],
  },
  {
    name: 'git, cloned',
    prepare: () => {},
    desired: (root) => workingCopy(`${root}/new/app`, { url: repository, revision: 'v1', force: true }),
    changed: (root) => workingCopy(`${root}/new/app`, { url: repository, revision: 'main', depth: 1, force: true }),
    tamper: (root) => writeFileSync(`${root}/new/app/f`, 'by hand\n'),
    moved: ['work_tree'],
    ignored: /^\/new\/app\/\.git\//,
  },
  {
    name: 'git, in an empty directory, absent in between',
    prepare: (root) => mkdirSync(`${root}/app`, { mode: 0o750 }),
    desired: (root) => workingCopy(`${root}/app`, { url: repository, revision: 'v1' }),
    changed: (root) => workingCopy(`${root}/app`, { url: repository, revision: 'v1', ensure: 'absent' }),
    tamper: (root) => void spawnSync('git', ['-C', `${root}/app`, 'checkout', '-q', 'origin/main']),
    moved: ['revision'],
    ignored: /^\/app\/\.git\//,
  },
  {
    name: 'directory-unix, with everything below',
    prepare(root) {
      mkdirSync(`${root}/d/sub`, { recursive: true });
      writeFileSync(`${root}/d/sub/f`, 'theirs\n', { mode: 0o640 });
      writeFileSync(`${root}/d/g`, 'theirs\n', { mode: 0o755 });
      symlinkSync('g', `${root}/d/link`);
    },
    desired: (root) => directory(`${root}/d`, { recursive: true, mode: '0750', file_mode: '0644', ...owner }),
    changed: (root) => directory(`${root}/d`, { recursive: true, mode: '0700' }),
    tamper: (root) => chmodSync(`${root}/d/sub/f`, 0o600),
    moved: ['recursive'],
  },
  {
    name: 'directory-unix, with some files below',
    prepare(root) {
      mkdirSync(`${root}/d/sub`, { recursive: true });
      for (const name of ['a.key', 'sub/b.key', 'a.crt']) writeFileSync(`${root}/d/${name}`, 'theirs\n');
    },
    desired: (root) =>
      directory(`${root}/d`, { recursive: true, only: ['*.key'], mode: '0750', file_mode: '0600', ...owner }),
    changed: (root) => directory(`${root}/d`, { recursive: true, only: ['a.*'], file_mode: '0640' }),
    tamper: (root) => chmodSync(`${root}/d/sub/b.key`, 0o644),
    moved: ['recursive'],
  },
  {
    name: 'directory-unix, created',
    prepare: () => {},
    desired: (root) => directory(`${root}/new/deep/d`, { mode: '2750', ...owner }),
    changed: (root) => directory(`${root}/new/deep/d`, { mode: '0700' }),
    tamper: (root) => chmodSync(`${root}/new/deep/d`, 0o777),
    moved: ['mode'],
  },
  {
    name: 'directory-unix, taken over',
    prepare(root) {
      mkdirSync(`${root}/d`);
      chmodSync(`${root}/d`, 0o711);
      writeFileSync(`${root}/d/theirs`, 'theirs\n');
    },
    desired: (root) => directory(`${root}/d`, { mode: '0750', ...owner }),
    changed: (root) => directory(`${root}/d`, { mode: '0700' }),
    tamper: (root) => chmodSync(`${root}/d`, 0o777),
    moved: ['mode'],
  },
  {
    name: 'directory-unix, removed with everything below',
    prepare(root) {
      mkdirSync(`${root}/d`);
      chmodSync(`${root}/d`, 0o2750);
    },
    desired: (root) => directory(`${root}/d`, { ensure: 'absent', force: true }),
    changed: (root) => directory(`${root}/d`, { mode: '0700' }),
    tamper: (root) => mkdirSync(`${root}/d`),
    moved: ['ensure'],
  },
  {
    name: 'directory-unix, purged',
    prepare(root) {
      mkdirSync(`${root}/d/sub/deep`, { recursive: true });
      chmodSync(`${root}/d/sub`, 0o2770);
      writeFileSync(`${root}/d/theirs`, 'theirs\n', { mode: 0o604 });
      writeFileSync(`${root}/d/sub/deep/f`, Buffer.alloc(5 * 1024 * 1024, 'x'));
      symlinkSync('/nowhere', `${root}/d/sub/link`);
    },
    desired: (root) => directory(`${root}/d`, { source: 'files/d', purge: true, mode: '0750', ...owner }),
    changed: (root) => directory(`${root}/d`, { source: 'files/d', purge: true, mode: '0700' }),
    tamper: (root) => chmodSync(`${root}/d`, 0o777),
    moved: ['mode'],
  },
  {
    name: 'line-unix, in place of another, among CRLF and bytes that are no UTF-8',
    prepare(root) {
      writeFileSync(`${root}/f`, Buffer.from('# caf\xe9\r\nUMASK 022\r\nUMASK 077\r\nEND', 'latin1'));
      chmodSync(`${root}/f`, 0o640);
    },
    desired: (root) => line(`${root}/f`, 'UMASK 027', { match: '^UMASK\\s' }),
    changed: (root) => line(`${root}/f`, 'UMASK 002', { match: '^UMASK\\s' }),
    tamper: (root) => writeFileSync(`${root}/f`, readFileSync(`${root}/f`, 'latin1').replace('027', '000'), 'latin1'),
    moved: ['line'],
  },
  {
    name: 'line-unix, in its place, after a validation',
    prepare: (root) => writeFileSync(`${root}/f`, '[a]\nx\n[b]\n'),
    desired: (root) => line(`${root}/f`, 'y = 1', { match: '^y =', after: '^\\[a\\]', validate: 'test -s %' }),
    changed: (root) => line(`${root}/f`, 'y = 2', { match: '^y =', before: '^\\[b\\]' }),
    tamper: (root) => writeFileSync(`${root}/f`, '[a]\ny = 3\nx\n[b]\n'),
    moved: ['line'],
  },
  {
    name: 'line-unix, with what was captured',
    prepare: (root) => writeFileSync(`${root}/f`, 'a\nport = 80 # web\nb\n'),
    desired: (root) => line(`${root}/f`, 'port = 8080\\1', { match: '^port = \\d+(.*)$', backrefs: true }),
    changed: (root) => line(`${root}/f`, 'port = 9090\\1', { match: '^port = \\d+(.*)$', backrefs: true }),
    tamper: (root) => writeFileSync(`${root}/f`, 'a\nport = 1 # web\nb\n'),
    moved: ['line'],
  },
  {
    name: 'line-unix, in place of every line',
    prepare: (root) => writeFileSync(`${root}/f`, 'Port 22\nx\r\nPort 23\nPort 24'),
    desired: (root) => line(`${root}/f`, 'Port 2222', { match: '^Port ', replaces: 'every_line' }),
    changed: (root) => line(`${root}/f`, 'Port 2223', { match: '^Port ', replaces: 'every_line' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'Port 1\nx\r\nPort 2222\nPort 2222'),
    moved: ['line'],
  },
  {
    name: 'line-unix, in place of every part',
    prepare: (root) => writeFileSync(`${root}/f`, 'a=1 a=2\nb=1\na=3\n'),
    desired: (root) => line(`${root}/f`, 'a=8', { match: 'a=\\d', replaces: 'every_part' }),
    changed: (root) => line(`${root}/f`, 'a=9', { match: 'a=\\d', replaces: 'every_part' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'a=8 a=8\nb=1\na=4\n'),
    moved: ['line'],
  },
  {
    name: 'line-unix, added to a file without a last line break, then lost',
    prepare: (root) => writeFileSync(`${root}/f`, 'first\nlast'),
    desired: (root) => line(`${root}/f`, 'Port 22', { match: '^#Port' }),
    changed: (root) => line(`${root}/f`, 'Port 2222', { match: '^#Port' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'first\nlast'),
    moved: ['line'],
  },
  {
    name: 'line-unix, absent, from several places',
    prepare: (root) => writeFileSync(`${root}/f`, 'a 1\nx\na 2\na 3\ny\na 4'),
    desired: (root) => line(`${root}/f`, 'a', { match: '^a ', ensure: 'absent' }),
    changed: (root) => line(`${root}/f`, 'a 9', { match: '^a ' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'a 5\nx\ny'),
    moved: ['line'],
  },
  {
    name: 'ini-unix, in a new section',
    prepare: (root) => writeFileSync(`${root}/f`, 'top=1\n[a]\nx=1'),
    desired: (root) => ini(`${root}/f`, 'b', 'y', { value: '2' }),
    changed: (root) => ini(`${root}/f`, 'b', 'y', { value: '3', validate: 'test -s %' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'top=1\n[a]\nx=1\n\n[b]\ny=9'),
    moved: ['value'],
  },
  {
    name: 'ini-unix, taken over with its comments, absent in between',
    prepare: (root) => writeFileSync(`${root}/f`, '; head\r\n[a]\r\n# x = 0\r\n  x :  1 \r\ny = 2\r\n[b]\r\nx = 3\r\n'),
    desired: (root) => ini(`${root}/f`, 'a', 'x', { value: 'one two' }),
    changed: (root) => ini(`${root}/f`, 'a', 'x', { ensure: 'absent' }),
    tamper: (root) => writeFileSync(`${root}/f`, readFileSync(`${root}/f`, 'utf8').replace('one two', 'by hand')),
    moved: ['value'],
  },
  {
    name: 'json-unix, with new mappings, below a comment',
    prepare: (root) => writeFileSync(`${root}/f`, '{\n  "a": 1, // one\n  "b": {} // two\n}\n'),
    desired: (root) => structured('json-unix', `${root}/f`, '/b/c/d', { value: [1, 'x'] }),
    changed: (root) => structured('json-unix', `${root}/f`, '/b/c/d', { value: 'y', validate: 'test -s %' }),
    tamper: (root) => writeFileSync(`${root}/f`, readFileSync(`${root}/f`, 'utf8').replace('"x"', '9')),
    moved: ['value'],
  },
  {
    name: 'yaml-unix, taken over with its comments, absent in between',
    prepare: (root) => writeFileSync(`${root}/f`, '# head\r\na:\r\n    x: |\r\n        text\r\n    # note\r\n    y: 2'),
    desired: (root) => structured('yaml-unix', `${root}/f`, '/a/x', { value: 'yes' }),
    changed: (root) => structured('yaml-unix', `${root}/f`, '/a/x', { ensure: 'absent' }),
    tamper: (root) => writeFileSync(`${root}/f`, readFileSync(`${root}/f`, 'utf8').replace('"yes"', 'by hand')),
    moved: ['value'],
  },
  {
    name: 'toml-unix, in a new table',
    prepare: (root) => writeFileSync(`${root}/f`, 'a = 1\n[b]\nc = 2', { mode: 0o600 }),
    desired: (root) => structured('toml-unix', `${root}/f`, '/d/e/f', { value: { g: 1 } }),
    changed: (root) => structured('toml-unix', `${root}/f`, '/d/e/f', { value: 1.5 }),
    tamper: (root) => writeFileSync(`${root}/f`, readFileSync(`${root}/f`, 'utf8').replace('{ g = 1 }', '2')),
    moved: ['value'],
  },
  {
    name: 'block-unix, added',
    prepare: (root) => writeFileSync(`${root}/f`, '127.0.0.1 localhost\n', { mode: 0o600 }),
    desired: (root) => block(`${root}/f`, 'hosts', { content: '10.0.0.9 db\n10.0.0.8 web' }),
    changed: (root) => block(`${root}/f`, 'hosts', { content: '' }),
    tamper: (root) => writeFileSync(`${root}/f`, readFileSync(`${root}/f`, 'utf8').replace('10.0.0.8 web\n', '')),
    moved: ['content'],
  },
  {
    name: 'block-unix, at the start of a file',
    prepare: (root) => writeFileSync(`${root}/f`, '127.0.0.1 localhost\n', { mode: 0o600 }),
    desired: (root) => block(`${root}/f`, 'hosts', { content: '10.0.0.9 db\n', before: 'BOF', validate: 'test -s %' }),
    changed: (root) => block(`${root}/f`, 'hosts', { content: '10.0.0.8 db\n', after: '^127' }),
    tamper: (root) => writeFileSync(`${root}/f`, readFileSync(`${root}/f`, 'utf8').replace('10.0.0.9 db\n', '')),
    moved: ['content'],
  },
  {
    name: 'block-unix, taken over in the middle, absent in between',
    prepare: (root) => writeFileSync(`${root}/f`, 'a\r\n# BEGIN muster: m\r\ntheirs\r\n# END muster: m\r\nb\r\n'),
    desired: (root) => block(`${root}/f`, 'm', { content: 'ours\n' }),
    changed: (root) => block(`${root}/f`, 'm', { ensure: 'absent' }),
    tamper: (root) => writeFileSync(`${root}/f`, 'a\r\n# BEGIN muster: m\r\nby hand\r\n# END muster: m\r\nb\r\n'),
    moved: ['content'],
  },
  {
    name: 'script',
    prepare: () => {},
    desired: (root) =>
      script('s', {
        check: `test "$(cat ${root}/state)" = one`,
        apply: `echo one > ${root}/state`,
        undo: `rm -f ${root}/state`,
      }),
    changed: (root) =>
      script('s', {
        program: 'bash',
        check: `[[ $(cat ${root}/state) == two ]]`,
        apply: `echo two > ${root}/state`,
        undo: `rm -f ${root}/state`,
      }),
    tamper: (root) => writeFileSync(`${root}/state`, 'by hand\n'),
    moved: ['check'],
  },
];

const kindOf = ({ name }: Subject) => name.split(',', 1)[0];
const firstOfKind = new Map(subjects.toReversed().map((subject) => [kindOf(subject), subject]));
const further = subjects.filter((subject) => firstOfKind.get(kindOf(subject)) !== subject);
/** `npm test` selects the first subject of each kind, and a third of the others at random; other runs select all. */
const selected = [...firstOfKind.values(), ...sampled(further, Math.ceil(further.length / 3), !isSampling())];

let home: string;
let root: string;
let agent: ContractAgent;

async function begin(subject: Subject): Promise<void> {
  home = temporaryDirectory();
  root = `${home}/root`;
  mkdirSync(root);
  subject.prepare(root);
  agent = await contractAgent(`${home}/data`);
}

const snapshot = async () => snapshotTree(root);
const planAndApply = (resources: ResolvedResource[]) => planAndApplyOn({ agent, snapshot }, resources);
const plan = (resources: ResolvedResource[]) => agent.run(operation('plan', resources));
const apply = (resources: ResolvedResource[]) => agent.run(operation('apply', resources));

describe.each(selected)('$name', (subject) => {
  beforeEach(() => begin(subject));
  afterEach(async () => {
    await agent.stop();
    removeDirectory(home);
  });

  providerContract({
    moved: subject.moved,
    steps: 8,
    begin: async () => ({
      agent,
      desired: subject.desired(root),
      changed: subject.changed(root),
      snapshot: async () =>
        Object.fromEntries(Object.entries(snapshotTree(root)).filter(([path]) => !subject.ignored?.test(path))),
      tamper: async () => subject.tamper(root),
    }),
  });
});

describe('hostile surroundings', () => {
  beforeEach(() => begin({ ...(subjects[0] as Subject), prepare: () => {} }));
  afterEach(async () => {
    await agent.stop();
    removeDirectory(home);
  });
  const victim = () => `${home}/victim`;
  const failing = async (resource: ResolvedResource, message: RegExp) => {
    const before = snapshotTree(home);
    const planned = await plan([resource]);
    const outcome = await apply([resource, file(`${root}/other`, { content: 'goes on' })]);
    expect(planned.results).toMatchObject([{ status: 'failed' }]);
    expect(outcome.results).toMatchObject([
      { status: 'failed', message: expect.stringMatching(message) },
      { status: 'changed' },
    ]);
    await apply([]);
    const after = snapshotTree(home);
    for (const path of Object.keys(after)) if (path.startsWith('/data')) delete after[path];
    for (const path of Object.keys(before)) if (path.startsWith('/data')) delete before[path];
    expect(after).toEqual(before);
  };

  test('refuses a path that is relative or not normalized', async () => {
    await failing(file(`${root}/../victim`, { content: 'x' }), /\.\./);
    await failing(file('relative', { content: 'x' }), /absolute/);
    await failing(directory(`${root}//d`), /\/\//);
    await failing(file(`${root}/a\0b`, { content: 'x' }), /NUL/);
  });

  test('refuses a FIFO or directory in place of a file, without blocking', async () => {
    spawnSync('mkfifo', [`${root}/f`]);
    await failing(file(`${root}/f`, { content: 'x' }), /is a FIFO/);
    await failing(directory(`${root}/f`), /is a FIFO/);
    mkdirSync(`${root}/d`);
    await failing(file(`${root}/d`, { content: 'x' }), /is a directory/);
    writeFileSync(`${root}/plain`, '');
    await failing(directory(`${root}/plain`), /is a file/);
    await failing(file(`${root}/plain/below`, { content: 'x' }), /is not a directory/);
  });

  test.runIf(process.geteuid?.() === 0)('does not write to a device file', async () => {
    // The null device of the machine would be damaged if this failed.
    const made = spawnSync('mknod', [`${root}/null`, 'c', '1', '3']);
    expect(made.status).toBe(0);
    await failing(file(`${root}/null`, { content: 'x' }), /character device/);
  });

  test.runIf(process.geteuid?.() === 0)(
    'refuses to follow a link that an unprivileged user could have created',
    async () => {
      mkdirSync(victim());
      mkdirSync(`${root}/home`);
      chownSync(`${root}/home`, 65534, 65534);
      symlinkSync(victim(), `${root}/home/way`);
      await failing(file(`${root}/home/way/f`, { content: 'x' }), /symbolic link.*not followed/);
      await failing(directory(`${root}/home/way/d`), /symbolic link.*not followed/);
      // A link is refused even if root created it in a directory that root owns, below the user's directory.
      mkdirSync(`${root}/home/theirs`);
      symlinkSync(victim(), `${root}/home/theirs/way`);
      await failing(file(`${root}/home/theirs/way/f`, { content: 'x' }), /symbolic link.*not followed/);
    },
  );

  test.runIf(process.geteuid?.() === 0)('follows a link that root created in a directory that root owns', async () => {
    mkdirSync(`${root}/real`);
    symlinkSync('real', `${root}/way`);
    const outcome = await apply([file(`${root}/way/f`, { content: 'x' }), directory(`${root}/way`, {})]);
    expect(outcome.finished.status).toBe('succeeded');
    expect(readFileSync(`${root}/real/f`, 'utf8')).toBe('x');
    await apply([]);
    expect(existsSync(`${root}/real/f`)).toBe(false);
  });

  test.runIf(process.geteuid?.() === 0)(
    "refuses a hard link to another user's file in a user's directory",
    async () => {
      const { linkSync } = await import('node:fs');
      writeFileSync(victim(), 'secret of root', { mode: 0o600 });
      mkdirSync(`${root}/home`);
      chownSync(`${root}/home`, 65534, 65534);
      linkSync(victim(), `${root}/home/f`);
      await failing(file(`${root}/home/f`, { owner: 'nobody' }), /hard link/);
    },
  );

  test('replaces a link at the path of the file instead of writing through it', async () => {
    writeFileSync(victim(), 'untouched');
    symlinkSync(victim(), `${root}/f`);
    await apply([file(`${root}/f`, { content: 'ours' })]);
    expect(readFileSync(victim(), 'utf8')).toBe('untouched');
    expect(readFileSync(`${root}/f`, 'utf8')).toBe('ours');
  });

  test('fails in the plan and in the apply if the owner does not exist', async () => {
    await failing(file(`${root}/f`, { owner: 'no-such-user' }), /there is no user no-such-user/);
    await failing(directory(`${root}/d`, { group: 'no-such-group' }), /there is no group no-such-group/);
  });

  test('fails if the program of `validate` is missing, unless an earlier resource may install it', async () => {
    const checker = `${root}/checker`;
    const checked = file(`${root}/f`, { content: 'good\n', validate: `${checker} %` });
    await failing(checked, /`validate` of .* needs .*checker, which does not exist/);
    const brings = script('s', {
      check: `test -e ${checker}`,
      apply: `printf '#!/bin/sh\\ngrep -q good "$1"\\n' > ${checker}; chmod 755 ${checker}`,
      undo: `rm -f ${checker}`,
    });
    const planned = await plan([brings, checked]);
    expect(planned.results).toMatchObject([{ status: 'would_change' }, { status: 'would_change' }]);
    const outcome = await apply([brings, checked]);
    expect(outcome.results).toMatchObject([{ status: 'changed' }, { status: 'changed' }]);
    // The file is not written, so the program is not needed.
    rmSync(checker);
    expect((await plan([checked])).results[0]).toMatchObject({ status: 'unchanged' });
    // Shell builtins and shell syntax are not checked beforehand.
    for (const validate of ['test -s %', 'X=1; grep -q good %', '{ grep -q good; } < %'])
      expect((await apply([file(`${root}/g`, { content: `good ${validate}`, validate })])).finished.error).toBeNull();
  });

  test('does not install content that `validate` refuses', async () => {
    writeFileSync(`${root}/f`, 'good\n');
    const wrong = file(`${root}/f`, { content: 'bad\n', validate: 'grep good %' });
    const outcome = await apply([wrong]);
    expect(outcome.results).toMatchObject([{ status: 'failed', message: expect.stringContaining('refused') }]);
    expect(snapshotTree(root)).toMatchObject({ '/f': expect.stringContaining('good') });
    expect(Object.keys(snapshotTree(root))).toEqual(['/', '/f']);
    const [silent] = (await apply([file(`${root}/f`, { content: 'bad\n', validate: 'false %' })])).results;
    expect(silent?.message).toBe(`the new content of ${root}/f was refused because \`validate\` exited with 1`);
    const valid = await apply([file(`${root}/f`, { content: 'as good\n', validate: 'grep good %' })]);
    expect(valid.finished.status).toBe('succeeded');
    await apply([]);
    expect(readFileSync(`${root}/f`, 'utf8')).toBe('good\n');
  });

  test('writes a file with the longest name that the file system supports', async () => {
    const path = `${root}/${'n'.repeat(255)}`;
    expect((await apply([file(path, { content: 'x' })])).finished.status).toBe('succeeded');
    expect((await apply([file(`${root}/${'n'.repeat(256)}`, { content: 'x' })])).results[0]).toMatchObject({
      status: 'failed',
      message: expect.stringContaining('too long'),
    });
  });

  test('compares and restores large files without showing their content', async () => {
    const large = Buffer.alloc(5 * 1024 * 1024, 'large\n');
    writeFileSync(`${root}/f`, large);
    const outcome = await planAndApply([file(`${root}/f`, { content: 'small\n' })]);
    expect(outcome[0]?.diff).toContain('Too large');
    await planAndApply([]);
    expect(readFileSync(`${root}/f`).equals(large)).toBe(true);
  });

  test("keeps a directory that it created while it contains other users' files, and removes it later", async () => {
    await apply([directory(`${root}/d`), file(`${root}/d/sub/ours`)]);
    writeFileSync(`${root}/d/theirs`, '');
    const removed = await planAndApply([file(`${root}/d/sub/ours`)]);
    expect(removed[1]).toMatchObject({
      action: 'none',
      status: 'unchanged',
      message: expect.stringContaining('not empty'),
    });
    rmSync(`${root}/d/theirs`);
    await planAndApply([]);
    expect(existsSync(`${root}/d`)).toBe(false);
  });
});
