import { moduleSchemaId } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { moduleSchemaPath } from './module-schema.ts';

test('requests the module schema from the path in its `$id`', () => expect(moduleSchemaPath).toBe(moduleSchemaId));
