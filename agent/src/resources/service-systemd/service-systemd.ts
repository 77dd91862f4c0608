import { HostFailure } from '../../host/failure.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { confirmationOf } from '../systemd-unit/confirmation.ts';
import type { SeenService, ServiceBefore } from '../systemd-unit/seen.ts';
import { unitFault } from '../systemd-unit/unit-file.ts';
import { unitProvider } from '../systemd-unit/unit-provider.ts';

/** A systemd service: an existing unit, or a unit that the agent writes. */
export const serviceSystemd = defineProvider<'service-systemd', SeenService, ServiceBefore>({
  type: 'service-systemd',
  fields: {
    name: 'text',
    enabled: 'boolean?',
    running: 'boolean?',
    exec_start: 'text?',
    type: 'text?',
    description: 'text?',
    user: 'text?',
    group: 'text?',
    working_directory: 'text?',
    environment: 'map?',
    dependencies: 'list?',
    restart: 'text?',
    settings: 'map?',
    confirm_port: 'integer?',
    confirm_banner: 'text?',
    confirm_command: 'text?',
    ensure: 'text?',
  },
  ...unitProvider,
  confirms: ({ body }) => confirmationOf(body) !== null,

  check({ body }) {
    const fault = unitFault(body);
    if (fault !== null) throw new HostFailure(fault);
    const { confirm_port: port } = body;
    if (port != null && (port < 1 || port > 65_535)) throw new HostFailure('`confirm_port` must be from 1 to 65535');
  },
});
