"""The small tagger with labels of its own, and the preset for clinical Spanish that comes with it."""

import pytest

import allonym
from allonym.detection.adapters.recognizers import CLINICAL_SPANISH, list_findings
from allonym.errors import DataError, PolicyError
from allonym.labels import TAXONOMY
from allonym.models.runtime import HERE
from allonym.models.wordtagger import WordTagger
from allonym.policy import Policy

REPORT = """Datos del paciente.
Nombre: Aurelio.
Apellidos: Quintanilla Ferrer.
NHC: 4471098.
NASS: 28 33157790 41.
Domicilio: Calle Alfarería 27, 4º C.
Localidad/ Provincia: Sevilla.
CP: 41010.
Datos asistenciales.
Fecha de nacimiento: 14/02/1951.
País: España.
Edad: 67 años Sexo: H.
Fecha de Ingreso: 03/09/2018.
Médico: Rosario Valbuena Ortiz NºCol: 41 41 55821.
Informe clínico del paciente: Varón de 67 años, albañil jubilado, que acude por dolor abdominal y fiebre. Su hermana
falleció por un carcinoma gástrico. La ecografía mostró litiasis biliar y la analítica, una leucocitosis de 14.300.
Se realizó una colecistectomía el 5 de septiembre de 2018 en el Hospital Virgen del Rocío, sin complicaciones.
Remitido por: Dra. Rosario Valbuena Ortiz. Avenida de la Constitución 18. 41001 Sevilla. E-mail: rvalbuena@correo.example
"""
IDENTIFYING = (
    "Aurelio Quintanilla Ferrer 4471098 33157790 Alfarería Sevilla 41010 14/02/1951 03/09/2018 Rosario Valbuena Ortiz "
    "55821 septiembre Virgen Rocío Constitución rvalbuena"
).split()


def test_a_clinical_report_in_spanish_is_read_whole():
    text = allonym.anonymize(REPORT, "clinical-spanish").text
    assert not [word for word in IDENTIFYING if word in text]
    for phrase in ("dolor abdominal y fiebre", "carcinoma gástrico", "litiasis biliar", "leucocitosis de 14.300"):
        assert phrase in text
    assert "[PERSONA_1]" in text and "Fecha de nacimiento: [" in text


def test_the_preset_maps_all_labels_of_the_tagger():
    labels = Policy.load("clinical-spanish").settings("word_tagger")["labels"]
    assert set(labels) == set(WordTagger(HERE / CLINICAL_SPANISH).labels) and len(labels) == 22
    assert set(labels.values()) <= {label.name for label in TAXONOMY}
    policy = Policy.load("clinical-spanish")
    assert all(policy.looks_for(label) for label in labels.values())


def test_findings_have_the_borders_and_labels_of_the_corpus():
    model = WordTagger(HERE / CLINICAL_SPANISH)
    found = {(REPORT[f.start : f.end], f.label) for f in list_findings(REPORT, model, "es", 0.3)}
    assert found >= {
        ("Aurelio", "NOMBRE_SUJETO_ASISTENCIA"),
        ("4471098", "ID_SUJETO_ASISTENCIA"),
        ("14/02/1951", "FECHAS"),
        ("67 años", "EDAD_SUJETO_ASISTENCIA"),
        ("rvalbuena@correo.example", "CORREO_ELECTRONICO"),
    }
    assert list(list_findings("", model, "es", 0.3)) == []


def test_a_report_without_its_form_is_read_too():
    text = "Paciente de 54 años remitida por el Dr. Esteban Larraza desde el Hospital de Basurto el 3 de mayo de 2019."
    safe = allonym.anonymize(text, "clinical-spanish").text
    assert not [word for word in ("54", "Larraza", "Basurto", "mayo") if word in safe] and "remitida por el Dr." in safe


@pytest.mark.parametrize(("model", "error"), [("", PolicyError), ("no-such-folder", DataError)])
def test_a_model_that_is_not_there_is_an_error(model, error):
    policy = Policy.load("default").changed(
        {"detect": {"detectors": ["word_tagger"], "word_tagger": {"model": model}}}, "x"
    )
    with pytest.raises(error, match="word_tagger"):
        allonym.anonymize("Nombre: Aurelio", policy)


def test_a_folder_that_holds_something_else_is_an_error(tmp_path):
    (tmp_path / "model.json").write_text("{}", encoding="utf-8")
    table = {"detect": {"detectors": ["word_tagger"], "word_tagger": {"model": str(tmp_path)}}}
    with pytest.raises(DataError, match="holds no tagger of words"):
        allonym.anonymize("Nombre: Aurelio", Policy.load("default").changed(table, "x"))
