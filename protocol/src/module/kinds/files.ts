import { filePathFault } from '../files/module-file.ts';
import { boolean, choice, formatted, integer, line, list, map, text } from './field.ts';
import { aclFaults, directoryAcl, fileAcl, normaliseAcl } from './file-fields/acl.ts';
import { attributes, normaliseAttributes } from './file-fields/attributes.ts';
import { capabilities, normaliseCapabilities } from './file-fields/capabilities.ts';
import * as format from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

export const owner = formatted('Name or number of the owning user', format.unixAccount);
export const group = formatted('Name or number of the owning group', format.unixAccount);
export const mode = {
  ...formatted('Permissions: 3 or 4 octal digits in quotes, such as "0644", or u=rw,go=r', format.fileMode, {
    pattern: '^([0-7]{3,4}|[ugoa]+=[rwxst]*(,[ugoa]+=[rwxst]*)*)$',
  }),
  canonical: (value: string) => format.octalMode(value) ?? value.padStart(4, '0'),
};
/** Writes the mode in octal digits, the only form that agents support. */
export const normaliseMode = (body: Record<string, unknown>): void => {
  const octal = typeof body.mode === 'string' ? format.octalMode(body.mode) : null;
  if (octal !== null) body.mode = octal;
};
const content = text('The whole content');
const pattern = format.allOf(format.notEmpty, format.oneLine, format.maxLength(1000), format.regularExpression);
export const validate = text(
  'A command that must succeed before the file is replaced; % represents a file with the new content',
  format.validateCommand,
);
const filePath = format.allOf(format.notEmpty, (path) => filePathFault(path));
export const unixFilePath = formatted('Absolute path', format.unixFile, { pattern: '^/' });
const windowsFilePath = formatted('Absolute path with a drive letter', format.windowsPath, {
  pattern: '^[A-Za-z]:[\\\\/]',
});

export const fileKinds = {
  'file-unix': defineKind({
    description: 'A file, or a symbolic link',
    platforms: ['linux', 'macos'],
    example: 'path: /etc/motd\ncontent: "Welcome to ${{ agent.name }}\\n"\nowner: root\nmode: "0644"',
    required: { path: unixFilePath },
    optional: {
      content,
      content_base64: text('The whole content, as base64', format.base64),
      source: formatted('Path of a file in the module’s folder that has the whole content', filePath),
      copy_of: formatted('Absolute path of another file of the machine whose content is copied', format.unixFile, {
        pattern: '^/',
      }),
      symlink: text(
        'Target of a symbolic link to create instead of a file',
        format.allOf(format.notEmpty, format.noNul),
      ),
      owner,
      group,
      mode,
      acl: fileAcl,
      attributes,
      capabilities,
      validate,
      if_exists: choice(
        'Whether the content of an existing file is replaced; otherwise, only a new file gets the content',
        ['replace', 'keep'],
        'replace',
      ),
      ensure,
    },
    space: 'path',
    templated: true,
    sourced: 'file',
    normalise: (body) => {
      normaliseMode(body);
      normaliseAcl(body);
      normaliseAttributes(body);
      normaliseCapabilities(body);
    },
    faults: aclFaults,
    exclusive: [
      ['content', 'template', 'content_base64', 'source', 'copy_of', 'symlink'],
      ['symlink', 'mode'],
      ['symlink', 'acl'],
      ['symlink', 'attributes'],
      ['symlink', 'capabilities'],
      ['copy_of', 'capabilities'],
      ['symlink', 'validate'],
      ['symlink', 'if_exists'],
    ],
  }),
  'file-windows': defineKind({
    description: 'A file',
    platforms: ['windows'],
    example: 'path: \'C:\\ProgramData\\app\\app.ini\'\ncontent: "port=80\\r\\n"',
    isSupported: false,
    required: { path: windowsFilePath },
    optional: { content, ensure },
    space: 'path',
    canonical: format.canonicalWindowsPath,
    templated: true,
    exclusive: [['content', 'template']],
  }),
  'directory-unix': defineKind({
    description: 'A directory',
    platforms: ['linux', 'macos'],
    example: 'path: /srv/www\nowner: root\nmode: "0755"',
    required: { path: formatted('Absolute path', format.unixDirectory, { pattern: '^/' }) },
    optional: {
      source: formatted('Path of a directory in the module’s folder, from which the files are copied', filePath),
      recursive: boolean(
        'Whether owner and group apply to all files and directories below, mode to the directories, and file_mode to the files',
      ),
      file_mode: {
        ...mode,
        declared: mode.declared.meta({
          description:
            'Permissions of the files from `source`, or with `recursive` of all files below, without set-ID bits; an executable file of `source` is executable by those who may read it',
        }),
      },
      only: list(
        'Names of the files below that owner, group, and file_mode apply to, with * and ?; a path that starts with / is relative to the directory; all other entries below stay',
        formatted('A name, such as *.key', format.filePattern),
        { atLeast: 1, atMost: 64 },
      ),
      purge: boolean('Whether everything that no resource declares is removed from the directory'),
      force: boolean('Whether `ensure: absent` removes the directory with everything in it, which is not restored'),
      owner,
      group,
      mode,
      acl: directoryAcl,
      attributes,
      ensure,
    },
    space: 'path',
    sourced: 'directory',
    needs: { file_mode: ['recursive', 'source'], only: 'recursive' },
    canonical: format.withoutClosingSlash,
    faults: aclFaults,
    normalise: (body) => {
      body.path = format.withoutClosingSlash(String(body.path));
      normaliseMode(body);
      normaliseAcl(body);
      normaliseAttributes(body);
      const octal = typeof body.file_mode === 'string' ? format.octalMode(body.file_mode) : null;
      if (octal !== null) body.file_mode = octal;
    },
  }),
  'directory-windows': defineKind({
    description: 'A directory',
    platforms: ['windows'],
    example: "path: 'C:\\ProgramData\\app'",
    isSupported: false,
    required: { path: windowsFilePath },
    optional: { ensure },
    space: 'path',
    canonical: format.canonicalWindowsPath,
  }),
  'line-unix': defineKind({
    description: 'One line of a file that is otherwise managed elsewhere',
    platforms: ['linux', 'macos'],
    example: 'path: /etc/login.defs\nmatch: "^UMASK\\\\s"\nline: UMASK 027',
    required: { path: unixFilePath, line: line('The line, without its line break') },
    optional: {
      match: formatted('Regular expression of the line to replace; default: the text of `line`', pattern),
      backrefs: boolean(
        'Whether \\1 or \\g<name> in `line` is replaced with the groups of `match`; if no line matches, no line is added',
      ),
      replaces: choice(
        'What `line` replaces: the last or every line that `match` matches, or only every matched part of a line; with every_part, no line is added',
        ['last_line', 'every_line', 'every_part'],
        'last_line',
      ),
      before: formatted(
        'Regular expression of the line above which a new line is inserted; BOF for the start of the file',
        pattern,
      ),
      after: formatted(
        'Regular expression of the line below which a new line is inserted; EOF for the end of the file',
        pattern,
      ),
      validate,
      ensure,
    },
    exclusive: [['before', 'after']],
    needs: { backrefs: 'match', replaces: 'match' },
    faults: ({ replaces, ensure }) =>
      replaces === 'every_part' && ensure === 'absent'
        ? [
            {
              path: ['replaces'],
              message: 'every_part cannot be combined with ensure: absent, which removes whole lines',
            },
          ]
        : [],
    // `match` takes precedence, because two lines with the same `match` would replace each other on every apply.
    identifiedBy: (body) => ['path', body.match === undefined ? 'line' : 'match'],
    identity: (body) => joined(body.path, '#', body.match ?? body.line),
  }),
  'block-unix': defineKind({
    description: 'One marked block of a file that is otherwise managed elsewhere',
    platforms: ['linux', 'macos'],
    example: 'path: /etc/hosts\nmarker: muster-hosts\ncontent: "10.0.0.9 db\\n"',
    required: { path: unixFilePath, marker: formatted('Name of the block in the file', format.marker) },
    optional: {
      content,
      before: formatted(
        'Regular expression of the line above which a new block is inserted; BOF for the start of the file',
        pattern,
      ),
      after: formatted(
        'Regular expression of the line below which a new block is inserted; EOF for the end of the file',
        pattern,
      ),
      validate,
      ensure,
    },
    exclusive: [['before', 'after']],
    identifiedBy: ['path', 'marker'],
    identity: (body) => joined(body.path, '#', body.marker),
  }),
  'ini-unix': defineKind({
    description: 'One setting of an INI file that is otherwise managed elsewhere',
    platforms: ['linux', 'macos'],
    example: 'path: /etc/systemd/journald.conf\nsection: Journal\nkey: SystemMaxUse\nvalue: 500M',
    required: { path: unixFilePath, key: formatted('The key', format.iniKey) },
    optional: {
      section: formatted('The section, without brackets; default: the part above the first section', format.iniSection),
      value: line('The value; without it, the line has only the key'),
      validate,
      ensure,
    },
    identifiedBy: ['path', 'section', 'key'],
    identity: (body) => joined(joined(body.path, '#', body.section ?? ''), '#', body.key),
  }),
};

export const scriptKinds = {
  script: defineKind({
    description: 'A program for changes that no other kind can make',
    platforms: ['linux', 'macos', 'windows'],
    example:
      'program: sh\nmanages: the search index\ncheck: test -s /srv/index\napply: build-index > /srv/index\nundo: rm -f /srv/index',
    required: {
      program: formatted(
        'The interpreter of apply, check, and undo: a shell, or an absolute path',
        format.interpreter,
        {
          pattern: '^/',
          proposals: format.shells,
        },
      ),
      apply: text('Makes the change; any exit code except 0 fails the resource'),
    },
    optional: {
      check: text('Tests whether the machine is in the desired state: after exit code 0, apply does not run'),
      undo: text('Reverts the change'),
      manages: formatted(
        'Name of the managed object, which is the identity of the script; default: the id of the resource',
        format.allOf(format.notEmpty, format.maxLength(256), format.oneLine),
      ),
      creates: formatted('Absolute path; apply runs only if nothing exists there', format.unixFile, { pattern: '^/' }),
      user: formatted('User that the script runs as; default: root', format.unixAccount),
      group: formatted('Primary group that the script runs with; default: the group of its user', format.unixAccount),
      working_directory: formatted(
        'Absolute path of the directory that the script runs in; default: /',
        format.unixDirectory,
        {
          pattern: '^/',
        },
      ),
      environment: map('Environment variables', format.environmentName, text('A value', format.noNul)),
      timeout: integer(
        'Seconds after which apply, check, or undo is stopped; default: the limits of the agent',
        1,
        86_400,
      ),
      umask: formatted('Permissions that new files do not get; default: 0022', format.mode),
    },
    exclusive: [['check', 'creates']],
    normalise: (body) => {
      if (body.working_directory !== undefined)
        body.working_directory = format.withoutClosingSlash(String(body.working_directory));
    },
    identifiedBy: ['manages'],
    triggers: ['rerun_on'],
  }),
};
