import { moduleSchemaId } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { moduleSchemaPath } from './module-schema.ts';

test('the schema is asked for where it is served', () => expect(moduleSchemaPath).toBe(moduleSchemaId));
