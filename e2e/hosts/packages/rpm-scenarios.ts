import { beforeAll, describe, expect, test } from 'vitest';
import { exampleHash, expectModuleApplied } from '../documentation/documented-module.ts';
import { fileServerUp, requestsTo, sha256On, urlOf } from '../registries/package-files.ts';
import { ends, messageOf, type Package, type PackageAgent } from './package-agent.ts';
import { rpms } from './rpm-packages.ts';

/** What package managers with rpm must do. */

/** A module in docs/coming-from.md for a package manager, as in `expectModuleApplied`. */
interface Idioms {
  name: string;
  family: string;
  replacements: Readonly<Record<string, string>>;
  /** Shell text that prepares the machine. */
  prepare?: string;
}

/** Registers the tests of packages from .rpm files, and of a documented module with such a file. */
export function describeRpmFiles(packages: () => PackageAgent, idioms: Idioms): void {
  describe('from files', () => {
    beforeAll(async () => {
      await packages().machine.sh(`${fileServerUp('/srv/files')}
        mkdir -p /srv/files; cp ${rpms}/*.rpm /srv/files; echo 'not a package' > /srv/files/text.rpm`);
      await requests();
    });

    const requests = () => requestsTo(packages().machine);
    const fromFile = async (file: string, fields: object = {}) => ({
      url: urlOf(file),
      sha256: await sha256On(packages().machine, `/srv/files/${file}`),
      ...fields,
    });

    test('a package is installed, upgraded, and downgraded to the version of its file', async () => {
      const { apply, installed } = bound(packages());
      const old = await fromFile('hello-1.0-1.noarch.rpm');
      const recent = await fromFile('hello-0.9-1.noarch.rpm', { version: '1:0.9' });
      for (const [fields, version] of [
        [old, '0:1.0-1'],
        [recent, '1:0.9-1'],
        [old, '0:1.0-1'],
      ] as const) {
        expect(ends(await apply(['hello', fields]))).toEqual({ hello: 'changed' });
        expect(await installed()).toEqual(expect.arrayContaining([`hello ${version}`, 'lib 0:2.0-1']));
        await requests();
        expect(ends(await apply(['hello', fields]))).toEqual({ hello: 'unchanged' });
        expect(await requests()).toEqual([]);
      }
      await apply();
      expect((await installed()).filter((line) => /^(hello|lib) /.test(line))).toEqual([]);
    });

    test('the idioms of the documentation are planned as they are applied, and removed', async () => {
      const { machine, agent } = packages();
      const { name, prepare = 'true', ...options } = idioms;
      await machine.sh(prepare);
      const before = await packages().installed();
      const file = await fromFile('other-1.0-1.noarch.rpm');
      const replacements = {
        ...options.replacements,
        'name: exporter': 'name: other',
        'https://downloads.example.com/exporter-1.4.2-1.noarch.rpm': file.url,
        [exampleHash]: file.sha256,
      };
      await expectModuleApplied(agent, name, { ...options, replacements });
      expect(await packages().installed()).toEqual(before);
    });

    test('an unsuitable package file fails before anything is installed, and does not stop other packages', async () => {
      const { apply, installed } = bound(packages());
      const reported = await apply(
        ['hash', { url: urlOf('hello-1.0-1.noarch.rpm'), sha256: '0'.repeat(64) }],
        ['text', await fromFile('text.rpm')],
        ['other', await fromFile('hello-1.0-1.noarch.rpm')],
        ['hello.x86_64', await fromFile('hello-1.1-1.noarch.rpm')],
        ['needs', await fromFile('needs-1.0-1.noarch.rpm', { version: '2.0' })],
        ['lib', await fromFile('lib-2.0-1.noarch.rpm')],
      );
      expect(ends(reported)).toEqual({
        ...{ hash: 'failed', text: 'failed', other: 'failed', 'hello.x86_64': 'failed', needs: 'failed' },
        lib: 'changed',
      });
      for (const [name, message] of Object.entries({
        hash: 'the content does not have the declared SHA-256',
        text: 'the file is not an .rpm file: ',
        other: 'the file has the package hello, not other',
        'hello.x86_64': 'the file is for the architecture noarch, not x86_64',
        needs: 'the file has version 1.0-1, not the declared 2.0',
      }))
        expect(messageOf(reported, name)).toContain(message);
      expect((await installed()).filter((line) => /^(hello|other|needs) /.test(line))).toEqual([]);
      await apply();
    });
  });
}

const bound = (packages: PackageAgent) => ({
  apply: (...declared: readonly Package[]) => packages.apply(...declared),
  installed: () => packages.installed(),
});
