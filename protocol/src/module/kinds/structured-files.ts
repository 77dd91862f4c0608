import { anyValue, formatted } from './field.ts';
import { unixFilePath, validate } from './files.ts';
import * as format from './format.ts';
import { defineKind, ensure, joined } from './kind.ts';

/** Defines the kind for a single value in a structured file. */
const structured = (syntax: string, example: string) =>
  defineKind({
    description: `One value of a ${syntax} file that is otherwise managed elsewhere`,
    platforms: ['linux', 'macos'],
    example,
    required: {
      path: unixFilePath,
      pointer: formatted(
        'The keys that lead to the value, as a JSON pointer such as /log/level; a number selects an element of a list',
        format.pointer,
        { pattern: '^/' },
      ),
    },
    optional: {
      value: anyValue(
        'The value: text, a number, true or false, a list, or a mapping; required unless `ensure` is absent',
      ),
      validate,
      ensure,
    },
    presentNeeds: ['value'],
    identifiedBy: ['path', 'pointer'],
    identity: (body) => joined(body.path, '#', body.pointer),
  });

export const structuredFileKinds = {
  'json-unix': structured('JSON', 'path: /etc/docker/daemon.json\npointer: /log-opts/max-size\nvalue: 10m'),
  'yaml-unix': structured('YAML', 'path: /etc/netplan/50-cloud-init.yaml\npointer: /network/version\nvalue: 2'),
  'toml-unix': structured(
    'TOML',
    'path: /etc/containerd/config.toml\npointer: /plugins/cri/sandbox_image\nvalue: registry.example/pause:3.10',
  ),
};
