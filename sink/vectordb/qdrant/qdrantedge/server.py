"""Qdrant's engine behind those requests of Qdrant's interface (1.16) that giantstream makes.

    python3 server.py HOST PORT FOLDER

What the engine has no word for, aliases and the names of collections, is kept here. A request, a parameter or a field
that is not known is refused, so that one which is new has to be looked up in the interface and added.
"""

import json
import os
import re
import shutil
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import qdrant_edge as q

PARAMETERS = {"wait": ("true",), "ordering": ("strong",), "consistency": ("majority",)}
SCHEMAS = {
    "float": q.PayloadSchemaType.Float,
    "bool": q.PayloadSchemaType.Bool,
    "datetime": q.PayloadSchemaType.Datetime,
    "keyword": q.PayloadSchemaType.Keyword,
}
# The engine wants a vector of some kind in each collection.
UNUSED = "unused"


class Refused(Exception):
    def __init__(self, code, why):
        super().__init__(why)
        self.code = code


def known(body, *names):
    """The fields of an object, None for those that are missing."""
    if not isinstance(body, dict) or not set(body) <= set(names):
        raise Refused(400, f"{body} is no object of {names}")
    return [body.get(name) for name in names]


def point_id(value):
    if isinstance(value, str):
        uuid.UUID(value)
    elif isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Refused(400, f"the id {value} is neither a whole number nor a UUID")
    return value


def condition(body):
    if "must" in body or "should" in body:
        return filtered(body)
    if "has_id" in body:
        (ids,) = known(body, "has_id")
        return q.HasIdCondition({point_id(i) for i in ids})
    key, match, within = known(body, "key", "match", "range")
    if match is not None:
        return q.FieldCondition(key=key, match=q.MatchValue(*known(match, "value")))
    lt, lte = known(within, "lt", "lte")
    return q.FieldCondition(key=key, range=q.RangeFloat(lt=lt, lte=lte))


def filtered(body):
    must, should = known(body, "must", "should")
    make = lambda all: None if all is None else [condition(c) for c in all]
    return q.Filter(must=make(must), should=make(should))


def point(body):
    at, vector, payload = known(body, "id", "vector", "payload")
    return q.Point(id=point_id(at), vector=vector, payload=payload)


def record(of):
    at = of.id if isinstance(of.id, int) else str(of.id)
    return {"id": at, "payload": of.payload, "vector": of.vector}


class Database:
    def __init__(self, folder):
        self.folder, self.made = folder, 0
        self.collections = {}  # name: the engine's, and its folder
        self.aliases = {}

    def create(self, name, body):
        if name in self.collections:
            raise Refused(409, f"Collection `{name}` already exists!")
        vectors, optimizers = known(body, "vectors", "optimizers_config")
        known(optimizers or {}, "indexing_threshold")
        params = {UNUSED: q.EdgeVectorParams(size=1, distance=q.Distance.Dot)}
        for vector, of in vectors.items():
            size, distance = known(of, "size", "distance")
            params[vector] = q.EdgeVectorParams(size=size, distance=getattr(q.Distance, distance))
        self.made += 1
        folder = os.path.join(self.folder, str(self.made))
        os.mkdir(folder)
        # The folder goes with the test: nothing is to be restored from a log.
        config = q.EdgeConfig(vectors=params, wal_enabled=False)
        self.collections[name] = q.EdgeShard.create(folder, config), folder
        return True

    def drop(self, name):
        engine, folder = self.collections.pop(name)
        engine.close()
        shutil.rmtree(folder)
        return True

    def answer(self, request, path, body):
        """The result of a request. path is what stands after /collections/, if that is where it begins."""
        if request == "GET aliases":
            return {"aliases": [{"alias_name": a, "collection_name": c} for a, c in self.aliases.items()]}
        if request == "GET collections" and not path:
            return {"collections": [{"name": name} for name in self.collections]}
        if request == "POST collections" and path == ["aliases"]:
            (actions,) = known(body, "actions")
            for action in actions:
                delete, create = known(action, "delete_alias", "create_alias")
                if delete:
                    del self.aliases[known(delete, "alias_name")[0]]
                if create:
                    collection, alias = known(create, "collection_name", "alias_name")
                    self.engine(collection)
                    self.aliases[alias] = collection
            return True
        name, what = path[0], request.split()[0] + " " + "/".join(path[1:])
        if what == "GET exists":
            return {"exists": name in self.collections}
        if what == "PUT ":
            return self.create(name, body)
        engine = self.engine(name)
        if what == "DELETE ":
            return self.drop(name)
        return self.collection(engine, what, body)

    def engine(self, name):
        name = self.aliases.get(name, name)
        if name not in self.collections:
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")
        return self.collections[name][0]

    def collection(self, engine, what, body):
        done = {"status": "completed"}
        if what == "GET ":
            schema = engine.info().payload_schema
            kind = lambda field: re.sub(r".*\.", "", repr(field.data_type)).lower()
            return {"status": "green", "payload_schema": {f: {"data_type": kind(k)} for f, k in schema.items()}}
        if what == "PATCH ":
            (optimizers,) = known(body, "optimizers_config")
            known(optimizers, "indexing_threshold")
            engine.optimize()
            return True
        if what == "PUT index":
            field, schema = known(body, "field_name", "field_schema")
            engine.update(q.UpdateOperation.create_field_index(field, SCHEMAS[schema]))
            return done
        if what == "PUT points":
            points, update = known(body, "points", "update_filter")
            engine.update(q.UpdateOperation.upsert_points([point(p) for p in points], condition=filtered(update)))
            return done
        if what == "POST points/payload":
            payload, ids = known(body, "payload", "points")
            engine.update(q.UpdateOperation.set_payload([point_id(i) for i in ids], payload))
            return done
        if what == "POST points/batch":
            for operation in known(body, "operations")[0]:
                payload, of = known(known(operation, "set_payload")[0], "payload", "filter")
                engine.update(q.UpdateOperation.set_payload_by_filter(filtered(of), payload))
            return done
        if what == "POST points":
            ids, payload, vector = known(body, "ids", "with_payload", "with_vector")
            return [record(r) for r in engine.retrieve([point_id(i) for i in ids], payload, vector)]
        if what == "POST points/scroll":
            limit, payload, vector = known(body, "limit", "with_payload", "with_vector")
            found, rest = engine.scroll(q.ScrollRequest(limit=limit, with_payload=payload, with_vector=vector))
            return {"points": [record(r) for r in found], "next_page_offset": rest}
        raise Refused(404, f"{what} is not known")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet, and waits for no acknowledgement of its headers
    database, lock = None, threading.Lock()

    def handle_one(self):
        url = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            for name, values in parse_qs(url.query).items():
                if values[0] not in PARAMETERS.get(name, ()):
                    raise Refused(400, f"the parameter {name}={values} is not known")
            parts = [unquote(p) for p in url.path.strip("/").split("/")]
            if parts == [""]:
                return self.reply(200, {"title": "qdrant - vector search engine", "version": "1.16.0"})
            with self.lock:
                body = json.loads(content) if content else {}
                result = self.database.answer(f"{self.command} {parts[0]}", parts[1:], body)
            self.reply(200, {"result": result, "status": "ok"})
        except Refused as e:
            self.reply(e.code, {"status": {"error": str(e)}})
        except Exception as e:  # of the engine: a vector of another length, say
            self.reply(400, {"status": {"error": f"Wrong input: {e}"}})

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_one

    def reply(self, code, body):
        if code not in (200, 404, 409):
            print(self.command, self.path, code, body, flush=True)
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def main():
    host, port, folder = sys.argv[1:]
    Handler.database = Database(folder)
    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()


main()
