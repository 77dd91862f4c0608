import { globSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { changeOneValue, type SyntaxName } from '../../agent/src/resources/structured-edit/test/real-file.ts';
import { derivedRoot } from '../../e2e/hosts/derived-root.ts';
import { benchOptions } from './run/options.ts';

/**
 * Changes one value in each of 200 or more configuration files of Debian packages, and checks that only its line
 * differs. The packages are installed in a root directory for test hosts. `--smoke` reads the files of this
 * repository's packages instead.
 *
 * npm run soak -- configuration-files
 */
const options = benchOptions({ numbers: { files: [60, 5], seed: [Date.now() % 100_000, 1] } });

const packages = [
  ...['webpack', 'rubocop', 'ruby-faker', 'netplan.io', 'prometheus', 'prometheus-snmp-exporter'],
  ...['librust-clap-dev', 'golang-github-containers-common', 'containerd', 'php8.2-cli'],
];
const patterns: Readonly<Record<SyntaxName, readonly string[]>> = {
  ini: ['usr/lib/systemd/system/*.{service,timer,socket}', 'etc/php/**/*.ini', 'etc/systemd/*.conf'],
  json: ['usr/share/nodejs/**/package.json'],
  yaml: ['{etc,usr/share,usr/lib,var/lib}/**/*.{yaml,yml}'],
  toml: [
    'usr/share/cargo/registry/*/Cargo.toml',
    'etc/containerd/*.toml',
    '{etc,usr/share}/containers/{containers,registries,storage}.conf',
  ],
};
const ownPatterns: Readonly<Record<SyntaxName, readonly string[]>> = {
  ...{ ini: [], toml: [], json: ['node_modules/*/package.json'], yaml: ['node_modules/*/.github/**/*.yml'] },
};

let state = options.seed;
/** Returns a number in [0, 1) from a linear congruential generator. */
function random(): number {
  state = (state * 48_271 + 11) % 2_147_483_647;
  return state / 2_147_483_647;
}

const root = options.smoke
  ? join(import.meta.dirname, '../..')
  : await derivedRoot({ name: 'configuration', packages });
console.log(`seed ${options.seed}`);
let wrong = 0;
let total = 0;
for (const name of Object.keys(patterns) as SyntaxName[]) {
  const found = (options.smoke ? ownPatterns : patterns)[name].flatMap((pattern) => globSync(pattern, { cwd: root }));
  const counts = { changed: 0, skipped: 0, wrong: 0 };
  while (found.length > 0 && counts.changed + counts.wrong < options.files) {
    const [path = ''] = found.splice(Math.floor(random() * found.length), 1);
    // Skips links, because their targets are either tested themselves or are outside the root.
    if (!lstatSync(join(root, path)).isFile()) continue;
    const trial = changeOneValue(name, path, readFileSync(join(root, path), 'utf8'), random());
    counts[trial.is]++;
    if (trial.is === 'wrong') console.log(`${name} ${path} ${trial.at}: ${trial.why}`);
  }
  console.log(`${name}: ${counts.changed} changed in one line, ${counts.wrong} wrong, ${counts.skipped} skipped`);
  wrong += counts.wrong;
  total += counts.changed + counts.wrong;
}
const isEnough = options.smoke || total >= 200;
console.log(`${total} files, ${wrong} wrong${isEnough ? '' : '; at least 200 files are required'}`);
process.exitCode = wrong === 0 && isEnough ? 0 : 1;
