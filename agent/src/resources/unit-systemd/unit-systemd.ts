import { HostFailure } from '../../host/failure.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { SeenService, ServiceBefore } from '../systemd-unit/seen.ts';
import { otherUnitFault } from '../systemd-unit/unit-file.ts';
import { unitProvider } from '../systemd-unit/unit-provider.ts';

/** A systemd unit of any type: an existing unit, or a unit that the agent writes. */
export const unitSystemd = defineProvider<'unit-systemd', SeenService, ServiceBefore>({
  type: 'unit-systemd',
  fields: {
    name: 'text',
    content: 'text?',
    settings: 'map?',
    drop_in: 'boolean?',
    enabled: 'boolean?',
    running: 'boolean?',
    masked: 'boolean?',
    ensure: 'text?',
  },
  ...unitProvider,

  check({ body }) {
    const fault = otherUnitFault(body);
    if (fault !== null) throw new HostFailure(fault);
  },
});
