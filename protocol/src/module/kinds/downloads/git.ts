import { boolean, formatted, integer, text } from '../field.ts';
import * as format from '../format.ts';
import { defineKind, ensure } from '../kind.ts';

export const gitKind = {
  git: defineKind({
    description: 'A working copy of a git repository',
    platforms: ['linux'],
    example:
      'path: /srv/app\nurl: ssh://git@git.example.org/app.git\nrevision: v1.4.2\nuser: root\nkey: "${{ secrets.deploy_key }}"\ndepth: 1\nsubmodules: true\nforce: false',
    required: {
      path: formatted('Absolute path of the working copy', format.unixFile, { pattern: '^/' }),
      url: formatted('https or ssh URL of the repository, or an absolute path', format.gitUrl),
      revision: formatted('A tag, a branch, or a full commit hash', format.gitRevision),
    },
    optional: {
      user: formatted('User that owns the working copy and runs git; default: root', format.unixAccount),
      key: text('SSH private key in OpenSSH format', format.privateKey),
      depth: integer('Number of commits to fetch; default: all', 1, 1_000_000),
      submodules: boolean('Whether submodules are checked out too'),
      force: boolean('Whether local changes and commits are discarded'),
      ensure,
    },
    space: 'path',
  }),
};
