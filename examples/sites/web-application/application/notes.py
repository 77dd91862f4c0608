"""A notebook: one WSGI application, which stores its notes in PostgreSQL.

`notes.py migrate` creates the table. Settings are read from the file that NOTES_SETTINGS names, and the password of the
database from the credentials of the systemd unit.
"""

import html
import json
import os
import sys
from urllib.parse import parse_qs

import psycopg2

VERSION = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "VERSION")).read().strip()
MAX_LENGTH = 10_000

with open(os.environ["NOTES_SETTINGS"]) as file:
    settings = json.load(file)


def connect():
    with open(os.path.join(os.environ["CREDENTIALS_DIRECTORY"], "database")) as file:
        password = file.read()
    return psycopg2.connect(password=password, connect_timeout=5, **settings["database"])


def query(text, values=()):
    connection = connect()
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(text, values)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def migrate():
    query("CREATE TABLE IF NOT EXISTS notes (id serial PRIMARY KEY, text text NOT NULL)")


def page():
    notes = "".join(f"<li>{html.escape(text)}</li>" for (text,) in query("SELECT text FROM notes ORDER BY id"))
    title = html.escape(settings["title"])
    return f'<!doctype html><meta charset="utf-8"><title>{title}</title><h1>{title}</h1><ul>{notes}</ul><p>{VERSION}</p>'


def application(environ, start_response):
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    status, kind, headers, body = "404 Not Found", "text/plain", [], "not found\n"
    if path == "/healthz":
        query("SELECT 1 FROM notes LIMIT 1")
        status, body = "200 OK", f"{VERSION}\n"
    elif path == "/" and method == "GET":
        status, kind, body = "200 OK", "text/html; charset=utf-8", page()
    elif path == "/" and method == "POST":
        length = min(int(environ.get("CONTENT_LENGTH") or 0), MAX_LENGTH)
        for text in parse_qs(environ["wsgi.input"].read(length).decode()).get("text", []):
            query("INSERT INTO notes (text) VALUES (%s)", (text,))
        status, headers, body = "303 See Other", [("Location", "/")], ""
    start_response(status, [("Content-Type", kind), *headers])
    return [body.encode()]


if __name__ == "__main__" and sys.argv[1:] == ["migrate"]:
    migrate()
