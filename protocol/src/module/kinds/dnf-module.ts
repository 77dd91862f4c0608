import { choice, formatted } from './field.ts';
import { byPattern } from './format.ts';
import { defineKind, ensure } from './kind.ts';

const moduleName = byPattern(
  /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/,
  'must be a name of letters, digits, ".", "_", "+", and "-", without a stream or profile',
);

export const dnfModuleKind = {
  'dnf-module': defineKind({
    description: 'The stream of a dnf module, which determines the versions of its packages, as on RHEL 8 and 9',
    platforms: ['linux'],
    example: 'name: nodejs\nstream: "20"\nstate: enabled',
    required: { name: formatted('Name of the module', moduleName) },
    optional: {
      stream: formatted('Stream whose packages dnf offers', moduleName),
      state: choice(
        'Whether the stream is enabled, or the module is disabled, so that dnf offers no packages of it',
        ['enabled', 'disabled'],
        'enabled',
      ),
      ensure,
    },
    faults: ({ stream, state, ensure }) => {
      const path = ['stream'];
      if (ensure === 'absent' || String(state).includes('${{') || String(ensure).includes('${{')) return [];
      if (state === 'disabled')
        return stream == null ? [] : [{ path, message: 'cannot be combined with state: disabled; keep only one' }];
      return stream == null ? [{ path: [], message: 'stream is required, unless state is disabled' }] : [];
    },
  }),
};
